package user

import (
	"fmt"
	"io"
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
		body, _ := io.ReadAll(req.Body)
		if req.URL.Path != "/_sandbox/calls" {
			http.Error(w, "there is no such thing", http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"method":%q,"query":%q,"body":%q}`, req.Method, req.URL.RawQuery, body)
	}))
	defer server.Close()
	environment := Environment{"AWS_ENDPOINT_URL=" + server.URL}
	type answer struct{ Method, Query, Body string }
	var got answer
	err := environment.Sandbox(t.Context(), http.MethodPut, "calls?by=caller", []int{3}, &got)
	if want := (answer{"PUT", "by=caller", "[3]"}); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	var text string
	err = environment.Sandbox(t.Context(), http.MethodGet, "calls", nil, &text)
	if want := `{"method":"GET","query":"","body":""}`; err != nil || text != want {
		t.Errorf("%q, %v", text, err)
	}
	err = environment.Sandbox(t.Context(), http.MethodGet, "others", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "404 Not Found: there is no such thing") {
		t.Errorf("%v", err)
	}
}
