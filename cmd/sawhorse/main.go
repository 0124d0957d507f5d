// Command sawhorse is the command line for operators of racks. `sawhorse help` lists its commands.
//
// check, render, plan, params and version need no cloud. The others use the AWS credentials and region of the
// environment. SAWHORSE_PREFIX is the parameter prefix if the stack was deployed with one other than /sawhorse.
// SAWHORSE_STACK is the stack's name if it is not Sawhorse. Exit codes: 0 good, 1 rejected or failed, 2 wrong use,
// 3 not known, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// wrongUse is an error in the command line (exit code 2).
type wrongUse struct{ error }

// misused returns an error in the command line.
func misused(format string, args ...any) error { return wrongUse{fmt.Errorf(format, args...)} }

// unusable is an error about an input that cannot be parsed, and so cannot be validated (exit code 2).
type unusable struct{ error }

// refused is a negative answer (exit code 1). Its text is empty if the printed output already has the reason.
type refused string

func (r refused) Error() string { return string(r) }

// undecided is the reason why the answer is not known, or not yet (exit code 3). Its text is empty if the printed
// output already has the reason.
type undecided string

func (u undecided) Error() string { return string(u) }

// looking converts the error of a command that only reads: if a call failed, the answer is not known.
func looking(err error) error {
	if err == nil || errors.As(err, new(refused)) || errors.As(err, new(undecided)) {
		return err
	}
	return undecided(err.Error())
}

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // A context cannot end a read from stdin, so exit here.
		<-signals
		os.Exit(130) // the exit code that shells use
	}()
	err := run(context.Background(), os.Args[1:])
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "sawhorse:", err)
	}
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(wrongUse)), errors.As(err, new(unusable)):
		return 2
	case errors.As(err, new(undecided)):
		return 3
	default:
		return 1
	}
}
