package kube

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/client-go/tools/clientcmd"
)

// TestFilesFitTogether has the API server's certificate verified as its clients do, and their tokens as the API server does.
func TestFilesFitTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kube")
	c, err := New(Config{Dir: dir, Authenticator: "http://127.0.0.1:1/", Ports: Ports{API: 6443}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := c.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA())
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc"} {
		if _, err := server.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("server certificate for %s: %v", name, err)
		}
	}
	tokens, err := tokenfile.NewCSV(c.file("tokens.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"admin": "sandbox-admin [system:masters]", "kwok": "kwok [system:masters]",
		"controller-manager": "system:kube-controller-manager []", "scheduler": "system:kube-scheduler []",
	} {
		config, err := clientcmd.BuildConfigFromFlags("", c.file(file+".kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		found, known, _ := tokens.AuthenticateToken(t.Context(), config.BearerToken)
		if !known || config.Host != "https://127.0.0.1:6443" || !bytes.Equal(config.CAData, c.CA()) {
			t.Fatalf("%s: host %q, token known: %v, authority %s", file, config.Host, known, config.CAData)
		}
		if got := fmt.Sprint(found.User.GetName(), " ", found.User.GetGroups()); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

func TestKeysAreTheOwners(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kube")
	if _, err := New(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if info, _ := file.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file.Name(), info.Mode())
		}
	}
}
