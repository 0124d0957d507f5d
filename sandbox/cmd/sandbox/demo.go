package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sawhorse-io/sawhorse/sandbox/attached"
	"github.com/sawhorse-io/sawhorse/sandbox/prerequisites"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// demo runs the main story on a sandbox of its own, and ends the sandbox whatever the result is.
func demo(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := prerequisites.Check(o.cache(), parts); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "Starting the sandbox …")
	env, end, err := attached.Start(ctx, o.root, o.state)
	if err != nil {
		return err
	}
	script := story.Run(ctx, env, os.Stdout, terminal(os.Stdout), story.Main)
	fmt.Fprintln(os.Stderr, "Ending the sandbox …")
	if err := end(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if n := len(script.Failures()); n > 0 {
		return fmt.Errorf("%d of the story's checks failed; the logs are in %s", n, o.logs())
	}
	return nil
}

// terminal reports whether a file is a terminal that can show colours.
func terminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
