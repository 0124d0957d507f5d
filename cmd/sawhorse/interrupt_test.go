package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Ctrl-C ends a command that waits for AWS, without a message.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	s.parameter("karpenter_enabled", 2) // so that watch waits
	command := exec.Command(os.Args[0], "watch", "prod")
	watching := make(chan struct{})
	once := sync.OnceFunc(func() { close(watching) })
	s.cloud.Before = func(call string) error {
		if strings.HasPrefix(call, "SSM.GetParametersByPath") {
			once()
		}
		return s.before(call)
	}
	command.Env = slices.Concat(os.Environ(), []string{asCommand + "=1"}, environment(t, s.cloud))
	var stderr strings.Builder
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	<-watching
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil || command.ProcessState.ExitCode() != 130 || stderr.String() != "" {
		t.Errorf("%v, %q", err, stderr.String())
	}
}

// Ctrl-C ends a command that waits for its input.
func TestInterruptedWhileReading(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "-"}, {"check", "--batch", "-"}} {
		command := exec.Command(os.Args[0], args...)
		command.Env = append(os.Environ(), asCommand+"=1")
		stdin, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		// More than a pipe holds: when it is written, the command is reading.
		if _, err := stdin.Write(bytes.Repeat([]byte(" "), 1<<18)); err != nil {
			t.Fatal(err)
		}
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err == nil || command.ProcessState.ExitCode() != 130 {
			t.Errorf("%v: %v", args, err)
		}
	}
}
