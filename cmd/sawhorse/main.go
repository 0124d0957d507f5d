// Command sawhorse is for the operators of racks.
//
//	sawhorse params [-o markdown|json]                         every parameter: type, default, pattern, meaning
//	sawhorse register RACK [--cluster NAME] [--rate N]         create the rack's parameters in SSM, with patterns
//	sawhorse status RACK                                       the rack's status
//	sawhorse watch RACK                                        follow a pass until it ends
//
// It uses the AWS credentials and region of its surroundings. SAWHORSE_PREFIX is the parameter prefix where the stack was
// deployed with another one than /sawhorse, SAWHORSE_STACK the stack's name where it is not Sawhorse. Exit: 0 good, 1 refused or failed, 2 wrong use.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// usage is an error of the command line itself.
type usage struct{ text string }

func (u usage) Error() string { return "usage: " + u.text }

var commands = map[string]func(ctx context.Context, args []string) error{
	"params":   runParams,
	"register": runRegister,
	"status":   runStatus,
	"watch":    runWatch,
}

const synopsis = `sawhorse COMMAND
  params [-o markdown|json]                  every parameter: type, default, pattern, meaning
  register RACK [--cluster NAME] [--rate N]  create the rack's parameters in SSM, with patterns
  status RACK                                the rack's status
  watch RACK                                 follow a pass until it ends`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := usage{synopsis}.orRun(ctx, os.Args[1:])
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "sawhorse:", err)
	if errors.As(err, new(usage)) {
		os.Exit(2)
	}
	os.Exit(1)
}

func (u usage) orRun(ctx context.Context, args []string) error {
	if len(args) > 0 && (args[0] == "help" || args[0] == "--help" || args[0] == "-h") {
		fmt.Println("usage: " + synopsis)
		return nil
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return u
	}
	return commands[args[0]](ctx, args[1:])
}

// paths are the places in Parameter Store of the stack that this command talks to.
func paths() names.Paths {
	if prefix := os.Getenv("SAWHORSE_PREFIX"); prefix != "" {
		return names.Paths{Prefix: prefix}
	}
	return names.Paths{Prefix: names.DefaultPrefix}
}

func stack() string {
	if name := os.Getenv("SAWHORSE_STACK"); name != "" {
		return name
	}
	return names.DefaultStack
}

// rackArgument takes the rack's name from the front of the arguments.
func rackArgument(args []string, use string) (rack string, rest []string, err error) {
	if len(args) == 0 {
		return "", nil, usage{use}
	}
	if !names.ValidRack(args[0]) {
		return "", nil, usage{fmt.Sprintf("%s: %q is no rack's name: a-z first, then a-z, 0-9 and dashes, no dash at the end", use, args[0])}
	}
	return args[0], args[1:], nil
}
