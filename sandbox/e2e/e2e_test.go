// Package e2e plays the end-to-end scripts of package story on a sandbox of their own. Each can be run by name:
// make e2e NAME=Burst.
package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var environment []string

func TestMain(m *testing.M) {
	code, err := withSandbox(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withSandbox runs the tests on an attached sandbox, which ends with this process, however that ends.
func withSandbox(m *testing.M) (code int, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	binary, state := filepath.Join(root, ".cache", "bin", "sandbox"), filepath.Join(root, ".cache", "e2e")
	leash, hold, err := os.Pipe()
	if err != nil {
		return 1, err
	}
	up := exec.Command(binary, "up", "--attached", "--root", root, "--state", state)
	up.Stdin, up.Stdout, up.Stderr = leash, io.Discard, os.Stderr
	if err := up.Run(); err != nil {
		return 1, fmt.Errorf("sandbox up: %w (make parts builds what it needs)", err)
	}
	defer func() {
		hold.Close()
		if out, downErr := exec.Command(binary, "down", "--root", root, "--state", state).CombinedOutput(); downErr != nil && err == nil {
			err = fmt.Errorf("sandbox down: %w: %s", downErr, out)
		}
	}()
	text, err := exec.Command("bash", "-c", `. "$1" && env -0`, "bash", state+".env").Output()
	if err != nil {
		return 1, fmt.Errorf("%s.env: read: %w", state, err)
	}
	environment = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	return m.Run(), nil
}

// play plays one script; each check of it that does not hold is an error of the test.
func play(t *testing.T, script func(*story.Teller)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var told strings.Builder
	teller := story.New(ctx, environment, &told, false)
	script(teller)
	for _, broken := range teller.Broken() {
		t.Error(broken)
	}
	if t.Failed() || testing.Verbose() {
		t.Log(told.String())
	}
	if teller.Held() == 0 {
		t.Error("the script has checked nothing")
	}
}
