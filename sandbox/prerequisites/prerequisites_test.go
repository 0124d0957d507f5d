package prerequisites

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingPartIsNamed(t *testing.T) {
	cache := t.TempDir()
	if err := os.WriteFile(filepath.Join(cache, "here"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(cache, []string{"here"}); err != nil {
		t.Errorf("nothing is missing, but: %v", err)
	}
	err := Check(cache, []string{"here", "bin/cluster"})
	if err == nil || !strings.Contains(err.Error(), "bin/cluster is missing; run `make sandbox`") {
		t.Errorf("got %v", err)
	}
}

func TestFullDiskIsNamed(t *testing.T) {
	if err := checkSpace("x", needed); err != nil {
		t.Errorf("there is enough, but: %v", err)
	}
	err := checkSpace("x", needed-1)
	if err == nil || !strings.Contains(err.Error(), "1023 MB free") {
		t.Errorf("got %v", err)
	}
}
