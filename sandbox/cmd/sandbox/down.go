package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// down ends the sandbox and returns when all of it has ended. The supervisor ends last and holds the lock until then.
func down(o options) error {
	pid, err := running(o.lock())
	if err != nil {
		return err
	}
	if pid == 0 {
		fmt.Fprintln(os.Stderr, "No sandbox is running.")
		if reason, err := os.ReadFile(o.reason()); err == nil {
			fmt.Fprintf(os.Stderr, "The last one ended: %s", reason)
		}
		if err := os.Remove(o.environment()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: remove: %w", o.environment(), err)
		}
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("supervisor (process %d): ask to end: %w", pid, err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if pid, err = running(o.lock()); err != nil || pid == 0 {
			fmt.Fprintln(os.Stderr, "The sandbox has ended.")
			return err
		}
	}
	return fmt.Errorf("supervisor (process %d): it has not ended after %s", pid, patience)
}
