// Command sandbox runs a local cluster and a local AWS for trying Sawhorse.
//
//	sandbox up [--attached]   start it, wait until it is ready, print how to use it
//	sandbox down              end it and wait until everything has ended
//	sandbox demo              run the story on a sandbox of its own, and end that sandbox
//	sandbox chaos             inject faults, on sandboxes of its own
//	sandbox enablings         turn Karpenter on in many new sandboxes, one after the other
//	sandbox cost              count what each kind of pass takes, and what AWS charges for it, on a sandbox of its own
//	sandbox latency           measure how long a write to a parameter takes until the NodePool has it, on a sandbox of its own
//	sandbox load              write to many racks, and many times to one, on a sandbox of its own
//	sandbox run [--attached]  the supervisor itself, which up starts
//
// All commands take --root, the checkout (default: the current folder), and --state, the folder of the sandbox's data
// (default: .cache/sandbox in the checkout; another folder makes a second sandbox). With --attached, the sandbox ends
// when its standard input closes, so the program that started it leaves nothing behind, even if it crashes.
package main

import (
	"flag"
	"fmt"
	"os"
)

// options are the settings from the command line.
type options struct {
	layout
	attached bool
}

var commands = map[string]func(options) error{
	"up": up, "down": down, "demo": demo, "chaos": havoc, "enablings": enablings, "cost": costs, "latency": latencies,
	"load": strain, "run": run,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: sandbox up [--attached] | down | demo | chaos | enablings | cost | latency | load | run [--attached]"+
			"   [--root DIR] [--state DIR]")
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	root := flags.String("root", ".", "the checkout")
	state := flags.String("state", "", "folder of the sandbox's data")
	attached := flags.Bool("attached", false, "end the sandbox when the standard input closes")
	_ = flags.Parse(os.Args[2:])
	paths, err := newLayout(*root, *state)
	if err == nil {
		err = commands[os.Args[1]](options{paths, *attached})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}
