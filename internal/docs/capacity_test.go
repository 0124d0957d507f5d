package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var command = regexp.MustCompile(`terminate-instances|delete-nodegroup|delete-auto-scaling-group|kubectl delete node`)

// No sentence of the product has a command that removes nodes or what launches them.
func TestNoCommandTakesCapacityAway(t *testing.T) {
	for _, folder := range []string{"internal", "cmd", "statemachine"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if found := command.FindString(string(text)); found != "" {
				t.Errorf("%s: %s", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
