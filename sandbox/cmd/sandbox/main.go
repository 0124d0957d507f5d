// Command sandbox runs a local cluster and a local AWS for trying Sawhorse.
//
//	sandbox up [--attached]   start it, wait until it is ready, print how to use it
//	sandbox down              end it and wait until everything has ended
//	sandbox cluster NAME      make a further EKS cluster like demo in a sandbox that runs
//	sandbox demo              run the story on a sandbox of its own, and end that sandbox
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
	// name is the cluster's name, for cluster.
	name string
}

var commands = map[string]func(options) error{
	"up": up, "down": down, "cluster": cluster, "demo": demo, "run": run,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: sandbox up [--attached] | down | cluster NAME | demo | run [--attached]   [--root DIR] [--state DIR]")
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	root := flags.String("root", ".", "the checkout")
	state := flags.String("state", "", "folder of the sandbox's data")
	attached := flags.Bool("attached", false, "end the sandbox when the standard input closes")
	_ = flags.Parse(os.Args[2:])
	paths, err := newLayout(*root, *state)
	if err == nil {
		err = commands[os.Args[1]](options{paths, *attached, flags.Arg(0)})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}
