package user

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatTheLinesGiveAShell(t *testing.T) {
	t.Setenv("AWS_REGION", "elsewhere")
	t.Setenv("HOME", "/home")
	lines := filepath.Join(t.TempDir(), "it's lines.env")
	if err := os.WriteFile(lines, []byte("export AWS_REGION=here AWS_ENDPOINT_URL=http://127.0.0.1:1\nexport BOTH=$HOME:'two\nlines'\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	environment, err := Read(t.Context(), lines)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"AWS_REGION": "here", "BOTH": "/home:two\nlines", "AWS_ENDPOINT": ""} {
		if got := environment.Value(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if config := environment.AWS(); config.Region != "here" || *config.BaseEndpoint != "http://127.0.0.1:1" {
		t.Errorf("%+v", config)
	}
	if got := append(environment, "AWS_REGION=later").Value("AWS_REGION"); got != "later" {
		t.Errorf("of two the last is in force, not %q", got)
	}
	if _, err := Read(t.Context(), lines+".none"); err == nil {
		t.Error("a file that is not there")
	}
}

func TestALineOfShell(t *testing.T) {
	environment := Environment{"PATH=" + os.Getenv("PATH"), "WHO=demo"}
	if got, err := environment.Run(t.Context(), `echo "$WHO"`); err != nil || got != "demo" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := environment.Run(t.Context(), "echo so far; false"); err == nil || !strings.Contains(err.Error(), "so far") {
		t.Errorf("a line that fails: %v", err)
	}
}

func TestTheSandboxAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/_sandbox/calls" {
			http.Error(w, "there is no such thing", http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"ssm":{"PutParameter":3}}`)
	}))
	defer server.Close()
	environment := Environment{"AWS_ENDPOINT_URL=" + server.URL}
	var calls map[string]map[string]int
	if err := environment.Ask(t.Context(), http.MethodGet, "calls", &calls); err != nil || calls["ssm"]["PutParameter"] != 3 {
		t.Errorf("%v, %v", calls, err)
	}
	if err := environment.Ask(t.Context(), http.MethodGet, "others", nil); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("%v", err)
	}
}
