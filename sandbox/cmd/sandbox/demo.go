package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sawhorse-io/sawhorse/sandbox/prerequisites"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// demo runs the main story on a sandbox of its own, and ends the sandbox whatever the result is.
func demo(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return o.withSandbox(ctx, func(env user.Environment) error {
		script := story.Run(ctx, env, os.Stdout, terminal(os.Stdout), story.Main)
		if err := ctx.Err(); err != nil {
			return errors.New("interrupted")
		}
		if n := len(script.Failures()); n > 0 {
			return fmt.Errorf("%d of the story's checks failed; the logs are in %s", n, o.logs())
		}
		return nil
	})
}

// withSandbox starts an attached sandbox, calls play with the environment of its users, and ends it.
func (o options) withSandbox(ctx context.Context, play func(user.Environment) error) error {
	if err := prerequisites.Check(o.cache(), parts, os.Getenv(prerequisites.PortVariable)); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "Starting the sandbox …")
	o.attached = false // the supervisor's standard input is a pipe from this process, and closing it ends the sandbox
	s, err := o.startSupervisor()
	if err != nil {
		return err
	}
	end := context.AfterFunc(ctx, func() { _ = s.leash.Close() })
	defer func() {
		end()
		fmt.Fprintln(os.Stderr, "Ending the sandbox …")
		_ = s.leash.Close()
		_ = s.command.Wait() // the supervisor has already reported the error
	}()
	if ready, reason := follow(s.progress, os.Stderr); !ready {
		return fmt.Errorf("%s (logs: %s and %s)", reason, o.supervisorLog(), o.logs())
	}
	env, err := user.Read(ctx, o.environment())
	if err != nil {
		return err
	}
	return play(env)
}

// terminal reports whether a file is a terminal that can show colours.
func terminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
