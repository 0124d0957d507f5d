package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var errRunning = errors.New("a sandbox is running already")

// takeLock makes this process the sandbox of the state folder for as long as it lives. The kernel releases the lock
// however the process ends, so it cannot become stale as a pid file can. The file holds the pid for `sandbox down`.
func takeLock(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock: open: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return errRunning
	}
	locks = append(locks, file)
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("lock: empty: %w", err)
	}
	if _, err := fmt.Fprintln(file, os.Getpid()); err != nil {
		return fmt.Errorf("lock: write pid: %w", err)
	}
	return nil
}

// locks keeps the garbage collector from closing the files, which would release the locks.
var locks []*os.File

// running returns the pid of the process that holds the lock, 0 if none does.
func running(path string) (int, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("lock: open: %w", err)
	}
	defer file.Close()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0, nil // no process holds it; closing the file releases this lock
	}
	// After the lock is taken, there is a short time before the pid is written.
	for range 100 {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, fmt.Errorf("lock: read: %w", err)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return pid, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0, fmt.Errorf("lock: read: %w", errors.New("it is held, but has no pid"))
}
