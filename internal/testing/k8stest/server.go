// Package k8stest gives tests a real API server: etcd and kube-apiserver from the sandbox's cluster binary. No
// controllers run, so tests write what a controller would write.
package k8stest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// BinaryVariable is the environment variable with the path of the cluster binary. The Makefile sets it.
const BinaryVariable = "SAWHORSE_CLUSTER_BINARY"

const adminToken = "test-admin"

var server struct {
	config *rest.Config
	err    error
}

// Main runs a package's tests with one API server for all of them: func TestMain(m *testing.M) { k8stest.Main(m) }.
func Main(m *testing.M) {
	code := func() int {
		binary := os.Getenv(BinaryVariable)
		if binary == "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "sawhorse-k8stest-")
		if err != nil {
			server.err = err
			return m.Run()
		}
		defer os.RemoveAll(dir)
		var stop func()
		server.config, stop, server.err = start(binary, dir)
		defer stop()
		return m.Run()
	}()
	os.Exit(code)
}

// Config returns an admin's configuration for the API server. Without a cluster binary it skips the test, or fails it
// in CI.
func Config(t *testing.T) *rest.Config {
	t.Helper()
	if os.Getenv(BinaryVariable) == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set: this test needs the cluster binary (make parts builds it)", BinaryVariable)
		}
		t.Skipf("%s is not set: run through make, which builds the cluster binary", BinaryVariable)
	}
	// Go's cache of test results knows only of files that are looked at while tests run, which is after Main has started this one.
	if _, err := os.Stat(os.Getenv(BinaryVariable)); err != nil {
		t.Fatal(err)
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	if server.config == nil {
		t.Fatal("the package has no TestMain that calls k8stest.Main")
	}
	return rest.CopyConfig(server.config)
}

// start runs etcd and kube-apiserver until stop is called. stop is never nil.
func start(binary, dir string) (config *rest.Config, stop func(), err error) {
	var children []*exec.Cmd
	stop = func() {
		for i := len(children) - 1; i >= 0; i-- {
			_ = children[i].Process.Kill()
			_ = children[i].Wait()
		}
	}
	run := func(args ...string) error {
		log, err := os.Create(filepath.Join(dir, args[0]+".log"))
		if err != nil {
			return err
		}
		defer log.Close()
		child := exec.Command(binary, args...)
		child.Stdout, child.Stderr, child.SysProcAttr = log, log, attributes()
		child.Env = append(os.Environ(), "GOGC=200") // a fifth of their time went into collecting garbage
		if err := child.Start(); err != nil {
			return fmt.Errorf("%s: start: %w", args[0], err)
		}
		children = append(children, child)
		return nil
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, stop, err
	}
	etcd := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	if err := prepare(dir); err != nil {
		return nil, stop, err
	}
	err = run("etcd", "--data-dir="+filepath.Join(dir, "etcd"), "--listen-client-url="+etcd,
		fmt.Sprintf("--listen-peer-url=http://127.0.0.1:%d", ports[1]))
	if err != nil {
		return nil, stop, err
	}
	key := filepath.Join(dir, "sa.key")
	err = run("kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", ports[2]), "--cert-dir="+dir, "--token-auth-file="+filepath.Join(dir, "tokens.csv"),
		"--authorization-mode=RBAC", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.100.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key,
		// No controllers run, so nothing creates the service accounts and tokens that this plugin requires.
		"--disable-admission-plugins=ServiceAccount",
		// With its cache, a list after a write waits until the cache has that write, which etcd is asked for each 100 ms.
		"--watch-cache=false")
	if err != nil {
		return nil, stop, err
	}
	config, err = ready(fmt.Sprintf("https://127.0.0.1:%d", ports[2]), dir)
	return config, stop, err
}

// ready waits until the API server is ready. The server signs its own certificate at the start, which the client
// trusts.
func ready(url, dir string) (*rest.Config, error) {
	config := &rest.Config{Host: url, BearerToken: adminToken}
	deadline := time.Now().Add(time.Minute)
	for ; time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ca, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
		if err != nil {
			continue
		}
		config.CAData = ca
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			continue
		}
		response, err := client.Get(url + "/readyz")
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return config, nil
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "kube-apiserver.log"))
	return nil, fmt.Errorf("kube-apiserver: not ready in a minute: %s", log[max(0, len(log)-2000):])
}

// prepare writes the files that the API server reads at its start.
func prepare(dir string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(filepath.Join(dir, "sa.key"), block, 0o600); err != nil {
		return err
	}
	tokens := adminToken + ",admin,admin,\"system:masters\"\n"
	return os.WriteFile(filepath.Join(dir, "tokens.csv"), []byte(tokens), 0o600)
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
