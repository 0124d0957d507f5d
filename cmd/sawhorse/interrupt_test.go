package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
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
	s := settled(t, outcome.StateReconciled)
	s.parameters["karpenter_enabled"]++ // so that watch waits
	command := exec.Command(os.Args[0], "watch", "prod")
	watching := make(chan struct{})
	once := sync.OnceFunc(func() { close(watching) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // the command ended while it sent this
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if s.ServeHTTP(w, r); strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetParametersByPath") {
			once()
		}
	}))
	defer server.Close()
	command.Env = slices.Concat(os.Environ(), []string{asCommand + "=1"}, credentialsFor(t, server.URL))
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
