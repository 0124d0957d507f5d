package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// wordStay on the standard input allows the supervisor to outlive its parent.
const wordStay = "stay\n"

// grace is how long a child may take to end. etcd and the API server take a second or two on a busy machine.
const grace = 15 * time.Second

// run is the supervisor. It hosts or starts every part of the sandbox. It stops all of them when it is told to, when
// one of them ends by itself, or when its parent has ended.
func run(o options) error {
	report := newProgress()
	if err := os.MkdirAll(o.state, 0o700); err != nil {
		return fmt.Errorf("%s: create: %w", o.state, err)
	}
	if err := takeLock(o.lock()); err != nil {
		report.failed(err)
		return err
	}
	err := o.supervise(report)
	if err == nil {
		return nil
	}
	report.failed(err)
	return errors.Join(err, os.WriteFile(o.reason(), []byte(err.Error()+"\n"), 0o600))
}

// errAsked is the cause of a requested end.
var errAsked = errors.New("asked to end")

func (o options) supervise(report *progress) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	// Signals are handled before anything starts, so that none of them can leave processes behind.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		cancel(fmt.Errorf("%w (%s)", errAsked, <-signals))
	}()
	go func() {
		if err := hold(os.Stdin); err != nil {
			cancel(err)
		}
	}()
	if err := o.empty(); err != nil {
		return err
	}
	s := newSandbox(o.layout, report, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	defer func() {
		s.stop()
		if err := os.RemoveAll(o.data()); err != nil { // 0.6 GB, of no use to anybody; the logs stay
			s.log.Error("the sandbox ends", "error", err.Error())
		}
	}()
	go func() {
		select {
		case err := <-s.processes.Died():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := s.start(ctx, cancel)
	ready := err == nil
	if ready {
		report.ready()
		<-ctx.Done()
	}
	// The cause is more useful than the errors that follow from it.
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	s.log.Info("the sandbox ends", "reason", err.Error())
	if removeErr := os.Remove(o.environment()); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		s.log.Error("the sandbox ends", "error", removeErr.Error())
	}
	if ready && errors.Is(err, errAsked) {
		return nil
	}
	return err
}

// hold reads the standard input to its end. The end means that the parent has ended, unless the
// parent has sent wordStay.
func hold(input io.Reader) error {
	text, err := io.ReadAll(input)
	if strings.HasSuffix(string(text), wordStay) {
		return nil
	}
	return fmt.Errorf("%w: whoever started the sandbox has gone (%v)", errAsked, err)
}
