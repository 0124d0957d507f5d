package fault

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// client names an environment variable. If it is set, the test binary calls the server that it names, and exits.
const client = "FAULT_TEST_SERVER"

func TestMain(m *testing.M) {
	if server := os.Getenv(client); server != "" {
		_, _ = http.Get(server)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A function's process is killed at its call. Other processes are not.
func TestKillEndsTheCallerAlone(t *testing.T) {
	for variable, killed := range map[string]bool{"AWS_LAMBDA_FUNCTION_NAME=f": true, "NOTHING=f": false} {
		refusal := make(chan error, 1)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			refusal <- signalCaller(req, syscall.SIGKILL)
		}))
		command := exec.Command(os.Args[0])
		command.Env = []string{client + "=" + server.URL, variable}
		err := command.Run()
		if got := err != nil && strings.Contains(err.Error(), "killed"); got != killed || (<-refusal == nil) != killed {
			t.Errorf("%s: it ended with %v", variable, err)
		}
		server.Close()
	}
}

// A port alone does not identify a connection.
func TestBothEndsNameAConnection(t *testing.T) {
	var got, other string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		got = inode(req.RemoteAddr, req.Host)
		other = inode(req.RemoteAddr, "127.0.0.1:9")
	}))
	defer server.Close()
	if _, err := http.Get(server.URL); err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(got); err != nil || n == 0 || other != "" || holder(got) != os.Getpid() {
		t.Errorf("%q and %q, held by %d", got, other, holder(got))
	}
}
