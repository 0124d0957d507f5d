package architecture

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// updateFlag finds the flag of a test that writes generated files again.
var updateFlag = regexp.MustCompile(`flag\.Bool\("(update[a-z-]*)"`)

// make verify runs every test that can write a generated file, with the flag that makes it do so.
func TestVerifyRegeneratesEverything(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, found := strings.Cut(string(text), "\nverify:")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	if !found {
		t.Fatal("the Makefile has no target verify")
	}
	flags := 0
	for _, file := range goFiles(t, root) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range updateFlag.FindAllStringSubmatch(string(text), -1) {
			flags++
			dir := regexp.QuoteMeta(path.Dir(file))
			run := regexp.MustCompile(`go test (\./` + dir + `|-C ` + dir + ` \.) .*-` + match[1] + `\b`)
			if !run.MatchString(recipe) {
				t.Errorf("%s has -%s, and make verify does not run it", file, match[1])
			}
		}
	}
	if flags < 5 {
		t.Errorf("%d flags: the test does not see them", flags)
	}
}
