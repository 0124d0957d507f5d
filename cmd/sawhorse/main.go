// Command sawhorse is the command line for operators of racks. `sawhorse help` lists its commands.
//
// check, render, plan and params need no cloud. The others use the AWS credentials and region of the environment.
// SAWHORSE_PREFIX is the parameter prefix if the stack was deployed with one other than /sawhorse. SAWHORSE_STACK is
// the stack's name if it is not Sawhorse. Exit codes: 0 good, 1 rejected or failed, 2 wrong use, 3 not known, 130
// interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// usage is an error in the command line: how the command is used and, if that is not enough, what is wrong.
type usage struct{ use, wrong string }

func (u usage) Error() string {
	if u.wrong == "" {
		return "usage: " + u.use
	}
	return u.wrong + "\nusage: " + u.use
}

// unusable is an input that cannot be validated at all.
type unusable struct{ error }

// errRefused ends a command that has printed a negative answer.
var errRefused = errors.New("refused")

// undecided says why there is no answer, or not yet. It is empty if the printed output already says so.
type undecided string

func (u undecided) Error() string { return string(u) }

// command is one of the program's commands.
type command struct {
	name string
	// args follow the name. what is a one-line description, help the complete one.
	args, what, help string
	// For completion: flags, the formats of -o, other words that may follow, and whether files may follow.
	flags, formats, words []string
	files                 bool
	run                   func(ctx context.Context, use string, args []string) error
}

func (c command) use() string { return "sawhorse " + c.name + " " + c.args }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted: // an error message of a library about the interrupted call would not help the user
		fmt.Fprintln(os.Stderr, "sawhorse: interrupted; what goes on in AWS goes on")
		os.Exit(130) // the exit code that shells use
	case errors.Is(err, undecided("")):
		os.Exit(3)
	case errors.As(err, new(undecided)):
		fmt.Fprintln(os.Stderr, "sawhorse:", err)
		os.Exit(3)
	case errors.As(err, new(usage)), errors.As(err, new(unusable)):
		fmt.Fprintln(os.Stderr, "sawhorse:", err)
		os.Exit(2)
	case errors.Is(err, errRefused):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "sawhorse:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usage{use: "sawhorse COMMAND\n" + synopsis()}
	}
	switch args[0] {
	case "help", "--help", "-h":
		return help(args[1:])
	}
	c, known := find(args[0])
	if !known {
		return unknownCommand(args[0])
	}
	for _, a := range args[1:] {
		if a == "--help" || a == "-h" {
			return help(args[:1])
		}
	}
	return c.run(ctx, c.use(), args[1:])
}
