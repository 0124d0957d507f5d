// Package audit tests tools/audit.py, which looks for known vulnerabilities. It has only tests.
package audit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The result distinguishes what a scanner could not examine, what it examined without findings, and what it found.
func TestAudit(t *testing.T) {
	const (
		goes, called, away = "exit 0", "echo GO-2026-1; exit 3", "echo 'govulncheck: fetching vulnerabilities: no such host' >&2; exit 1"
		clean, bad         = `echo '{"dependencies":[{"name":"a","version":"1","vulns":[]}]}'`,
			`echo '{"dependencies":[{"name":"a","version":"1","vulns":[{"id":"PYSEC-1"}]}]}'; exit 1`
		// pip-audit skips packages that PyPI does not know, and still succeeds.
		skipped       = `echo '{"dependencies":[{"name":"a","skip_reason":"not found on PyPI"}]}'`
		none, some    = `echo '{"vulnerabilities":{}}'`, `echo '{"vulnerabilities":{"left-pad":{"severity":"high"}}}'; exit 1`
		noneOfThemSay = `echo '{"message":"405 Method Not Allowed"}'; echo 'npm error audit endpoint returned an error' >&2; exit 1`
	)
	for _, c := range []struct {
		golang, pip, npm string
		status           int
		says             string
	}{
		{goes, clean, none, 0, "package-lock.json: no known vulnerability"},
		{called, clean, none, 1, "Go module sandbox: GO-2026-1"},
		{goes, bad, none, 1, "a 1: PYSEC-1"},
		{goes, clean, some, 1, "left-pad: high"},
		{away, clean, none, 3, "NOT LOOKED AT: govulncheck: fetching vulnerabilities: no such host"},
		{goes, skipped, none, 3, "NOT LOOKED AT: 1 of 1 packages; not found on PyPI"},
		{goes, "echo ERROR: no connection >&2; exit 1", none, 3, "NOT LOOKED AT: ERROR: no connection"},
		{goes, "", none, 3, "NOT LOOKED AT: error: [Errno 2]"}, // pip-audit could not be installed
		{goes, clean, noneOfThemSay, 3, "package-lock.json: NOT LOOKED AT: npm error audit endpoint returned an error"},
		{away, bad, noneOfThemSay, 1, "a 1: PYSEC-1"},
	} {
		bin := t.TempDir()
		for name, does := range map[string]string{"go": c.golang, "pip-audit": c.pip, "npm": c.npm} {
			if does == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		audit := exec.Command("tools/audit.py", filepath.Join(bin, "pip-audit"))
		audit.Dir = "../.."
		audit.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		said, err := audit.Output()
		status := 0
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			status = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if status != c.status || !strings.Contains(string(said), c.says) {
			t.Errorf("go %q, pip-audit %q, npm %q: status %d, want %d; want %q in\n%s", c.golang, c.pip, c.npm, status,
				c.status, c.says, said)
		}
	}
}
