package documents

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The page of the sandbox has the table of MiniStack's patches, as the wrapper prints it.
func TestTheDocumentListsThePatches(t *testing.T) {
	wrapper := exec.Command(root+"/.cache/ministack/bin/python", "-B", "../ministack/wrapper.py", "--patches")
	wrapper.Env, wrapper.Stderr = append(os.Environ(), "AWS_ENDPOINT_URL=http://127.0.0.1:1", "GATEWAY_PORT=1"), os.Stderr
	table, err := wrapper.Output()
	if err != nil {
		t.Fatal(err)
	}
	page, rows := read(t, root+"/docs/sandbox.md"), 0
	for line := range strings.Lines(string(table)) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		if rows++; !strings.Contains(page, line) {
			t.Errorf("docs/sandbox.md has no line %s", line)
		}
	}
	if rows < 10 {
		t.Errorf("%d rows: the test does not see them", rows)
	}
}
