package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/prerequisites"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// up starts the sandbox and returns when it is ready, or when everything has been stopped again. If a sandbox is
// already running, it only prints how to use it.
func up(o options) error {
	pid, err := running(o.lock())
	if err != nil {
		return err
	}
	if pid != 0 {
		fmt.Fprintln(os.Stderr, "The sandbox is running already.")
		return o.show()
	}
	if err := prerequisites.Check(o.cache(), parts); err != nil {
		return err
	}
	// The supervisor is in a session of its own, so the signals that end this process are passed on to it here.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	s, err := o.startSupervisor()
	if err != nil {
		return err
	}
	go func() {
		for range interrupts {
			_ = s.command.Process.Signal(syscall.SIGTERM)
		}
	}()
	ready, reason := follow(s.progress, os.Stderr)
	if !ready {
		_ = s.command.Wait()
		if reason == "" {
			reason = "it ended without saying why"
		}
		return fmt.Errorf("%s (logs: %s and %s); everything has been stopped", reason, o.supervisorLog(), o.logs())
	}
	if s.leash != nil {
		if _, err := io.WriteString(s.leash, wordStay); err != nil {
			return fmt.Errorf("supervisor: let go: %w", err)
		}
		if err := o.register(); err != nil {
			return err
		}
	}
	return o.show()
}

// register creates the parameters of the rack demo, as an operator would. In an attached sandbox the story does that.
func (o options) register() error {
	env, err := user.Read(context.Background(), o.environment())
	if err != nil {
		return err
	}
	command := exec.Command(o.part("bin/sawhorse"), "register", "demo", "--all", "--rate", "100") // SSM's quota does not apply here
	command.Env = env
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("sawhorse register demo: %w: %s", err, out)
	}
	return nil
}

// supervisor is a started supervisor as its parent sees it.
type supervisor struct {
	command  *exec.Cmd
	progress io.Reader
	leash    io.WriteCloser // its standard input; if attached it is nil, because the supervisor has ours, whose end is the sandbox's end
}

func (o options) startSupervisor() (*supervisor, error) {
	if err := os.MkdirAll(o.state, 0o700); err != nil {
		return nil, fmt.Errorf("%s: create: %w", o.state, err)
	}
	log, err := os.Create(o.supervisorLog())
	if err != nil {
		return nil, fmt.Errorf("supervisor: create log: %w", err)
	}
	defer log.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("supervisor: make pipe: %w", err)
	}
	defer writer.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("supervisor: find own program: %w", err)
	}
	s := &supervisor{command: exec.Command(self, "run", "--root", o.root, "--state", o.state), progress: reader}
	s.command.Dir, s.command.Stdout, s.command.Stderr = o.root, log, log
	s.command.ExtraFiles = []*os.File{writer}
	s.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if o.attached {
		s.command.Args = append(s.command.Args, "--attached")
		s.command.Stdin = os.Stdin
	} else if s.leash, err = s.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("supervisor: make pipe: %w", err)
	}
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("supervisor: start: %w", err)
	}
	return s, nil
}

// patience is much longer than a start or a stop takes.
const patience = 2 * time.Minute

// show prints the lines to paste, once the sandbox is ready. Another `sandbox up` may still be starting it.
func (o options) show() error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		lines, err := os.ReadFile(o.environment())
		if err == nil {
			fmt.Fprintf(os.Stderr, "The sandbox is ready. Paste these lines, or: . %s\n", quote(o.environment()))
			_, err = os.Stdout.Write(lines)
			return err
		}
		if pid, err := running(o.lock()); err != nil || pid == 0 {
			return errors.Join(errors.New("the sandbox has ended while it was starting"), err)
		}
	}
	return fmt.Errorf("the sandbox is not ready after %s", patience)
}
