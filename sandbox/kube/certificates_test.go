package kube

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// TestFilesFitTogether performs the TLS handshake between the API server and the administrator.
func TestFilesFitTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kube")
	c, err := New(Config{Dir: dir, Authenticator: "http://127.0.0.1:1/", Ports: Ports{API: 6443}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := tls.LoadX509KeyPair(c.file("server.crt"), c.file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA())
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc"} {
		leaf, _ := x509.ParseCertificate(server.Certificate[0])
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("server certificate for %s: %v", name, err)
		}
	}
	admin, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(admin.CertData, admin.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(certificate.Certificate[0])
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: usage}); err != nil {
		t.Errorf("administrator's certificate: %v", err)
	}
	if groups := leaf.Subject.Organization; admin.Host != "https://127.0.0.1:6443" || len(groups) != 1 || groups[0] != "system:masters" {
		t.Errorf("administrator: host %q, groups %v", admin.Host, groups)
	}
}

func TestKeysAreTheOwners(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kube")
	if _, err := New(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if info, _ := file.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file.Name(), info.Mode())
		}
	}
}
