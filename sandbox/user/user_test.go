package user

import (
	"os"
	"path/filepath"
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
