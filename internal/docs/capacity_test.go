package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	command   = regexp.MustCompile(`terminate-instances|delete-nodegroup|delete-auto-scaling-group|kubectl delete node`)
	takesAway = regexp.MustCompile(`(?i)\b(delete|terminate|remove|end)\b`)
	capacity  = regexp.MustCompile(`(?i)\b(node groups?|scaling groups?|nodepools?|nodes?|instances?|capacity|pools?)\b`)
	bold      = regexp.MustCompile(`\*\*[^*]+\*\*`)
)

// A copy that EKS failed to create has no nodes, and the next pass creates it again once it is deleted.
const emptyCopy = "node group COPY: create as a copy of GROUP: EKS gave up"

// No remedy removes nodes or what launches them: an operator who follows one during an incident must not make it worse.
func TestNoRemedyTakesCapacityAway(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	remedies := 0
	for _, entry := range regexp.MustCompile(`\n(- |\n)`).Split("\n"+string(text), -1) {
		entry = strings.TrimPrefix(strings.Join(strings.Fields(entry), " "), "- ")
		for _, remedy := range bold.FindAllString(entry, -1) {
			remedies++
			if takesAway.MatchString(remedy) && capacity.MatchString(entry) && !strings.HasPrefix(entry, emptyCopy) {
				t.Errorf("docs/troubleshooting.md: %q", entry)
			}
		}
	}
	if remedies < 150 {
		t.Errorf("docs/troubleshooting.md: %d remedies: the test does not see them", remedies)
	}
	if found := command.FindString(string(text)); found != "" {
		t.Errorf("docs/troubleshooting.md: %s", found)
	}
}

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
