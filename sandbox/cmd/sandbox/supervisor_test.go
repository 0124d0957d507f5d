package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFollowShowsProgressAndTheLastWord(t *testing.T) {
	var pipe, shown bytes.Buffer
	p := &progress{time.Now(), &pipe}
	p.say("Kubernetes answers")
	p.ready()
	p.say("not read any more")
	ready, reason := follow(&pipe, &shown)
	if !ready || reason != "" || !strings.HasSuffix(shown.String(), "s  Kubernetes answers\n") {
		t.Errorf("ready %v, reason %q, shown %q", ready, reason, shown.String())
	}
}

func TestFollowTellsWhyItFailed(t *testing.T) {
	var pipe, shown bytes.Buffer
	p := &progress{time.Now(), &pipe}
	p.failed(errors.Join(errors.New("etcd: ended"), errors.New("disk full")))
	if ready, reason := follow(&pipe, &shown); ready || reason != "etcd: ended; disk full" {
		t.Errorf("ready %v, reason %q", ready, reason)
	}
	if ready, reason := follow(&pipe, &shown); ready || reason != "" {
		t.Errorf("a supervisor that was killed: ready %v, reason %q", ready, reason)
	}
}

func TestTheSupervisorOutlivesOnlyAParentThatSaysSo(t *testing.T) {
	if err := hold(strings.NewReader(wordStay)); err != nil {
		t.Errorf("it was told to stay, but: %v", err)
	}
	for _, input := range []string{"", "sta"} {
		if err := hold(strings.NewReader(input)); !errors.Is(err, errAsked) {
			t.Errorf("input %q: %v", input, err)
		}
	}
}

func TestLockTellsWhoRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if pid, err := running(path); pid != 0 || err != nil {
		t.Errorf("before the first start: %d, %v", pid, err)
	}
	if err := os.WriteFile(path, []byte("4711\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid, err := running(path); pid != 0 || err != nil {
		t.Errorf("with what a killed one left: %d, %v", pid, err)
	}
	if err := takeLock(path); err != nil {
		t.Fatal(err)
	}
	if pid, err := running(path); pid != os.Getpid() || err != nil {
		t.Errorf("while it runs: %d, %v", pid, err)
	}
	if err := takeLock(path); !errors.Is(err, errRunning) {
		t.Errorf("a second one: %v", err)
	}
}

func TestEnvironmentWorksInAShell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's here")
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "env")
	if err := writeEnvironment(file, "http://127.0.0.1:1", filepath.Join(dir, "kube"), filepath.Join(dir, "bin"),
		lag{seed: 7, scale: 0.5}); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("/bin/sh", "-c",
		`. "$1"; echo "$AWS_ENDPOINT_URL $AWS_PROFILE [$AWS_PAGER]"; echo "$KUBECONFIG"; echo "$LAG $LAG_SEED $LAG_SCALE"; echo "$PATH"`,
		"sh", file)
	shell.Env = []string{"AWS_PROFILE=production", "AWS_PAGER=less", "PATH=/usr/bin"}
	got, err := shell.CombinedOutput()
	want := "http://127.0.0.1:1  []\n" + dir + "/kube\n1 7 0.5\n" + dir + "/bin:/usr/bin\n"
	if err != nil || string(got) != want {
		t.Errorf("%v, got %q, want %q", err, got, want)
	}
}

func TestEveryStartIsFromNothing(t *testing.T) {
	l, err := newLayout(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.empty(); err != nil {
		t.Fatal(err)
	}
	left := []string{l.data("old"), filepath.Join(l.logs(), "old"), l.environment(), l.reason()}
	for _, path := range left {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.empty(); err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", path)
		}
	}
	for _, tool := range []string{"aws", "kubectl"} {
		if _, err := os.Lstat(filepath.Join(l.tools(), tool)); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
	}
}
