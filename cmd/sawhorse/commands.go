package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// commands are all there are. It is a function because completion and help are among them.
func commands() []command {
	return []command{
		{
			name: "check", args: "[--batch] FILE|-", what: "tell whether parameters would be accepted", flags: []string{"--batch"}, run: runCheck,
			help: "Reads {\"rack\", \"params\": {name: text}, \"previous\"?: {name: text}, \"observed\"?: facts} and prints\n" +
				"{\"accepted\", \"problems\", \"warnings\"}. " + aboutInput,
		},
		{
			name: "render", args: "[--batch] [-o json|yaml] FILE|-", what: "print the NodePools and EC2NodeClasses", flags: []string{"--batch", "-o"}, run: runRender,
			help: "Reads what check reads and prints the manifests, in order of kind and name; none where Karpenter is off.\n" + aboutInput,
		},
		{
			name: "plan", args: "[-o text|json] FILE|-", what: "print what a pass would do", flags: []string{"-o"}, run: runPlan,
			help: "Reads what check reads and prints the steps that differ from what was last applied (\"previous\"), and what becomes\nof each pool's nodes. " + aboutInput,
		},
		{name: "params", args: "[-o markdown|json]", what: "list every parameter", flags: []string{"-o"}, run: runParams, help: "Prints name, type, default, pattern and meaning of each."},
		{
			name: "register", args: "RACK [--cluster NAME] [--rate N]", what: "create the rack's parameters in SSM, with patterns", flags: []string{"--cluster", "--rate"}, run: runRegister,
			help: "Creates what is missing (value unset), each with its description and pattern, so that SSM itself refuses a bad value;\n" +
				"existing ones keep their value. It can be stopped anywhere and run again.\n" +
				"  --cluster NAME  the EKS cluster, where its name is not the rack's\n" +
				"  --rate N        writes a second (default 2.5); SSM takes 3 from an account unless its higher throughput is switched on",
		},
		{name: "status", args: "RACK", what: "print the rack's status", run: runStatus, help: "Exit 1 where the rack is Rejected or Failed."},
		{name: "watch", args: "RACK", what: "follow a pass until it ends", run: runWatch, help: "A line for each step, then the status."},
		{name: "completion", args: "bash|zsh|fish", what: "print a completion script", run: runCompletion, help: "source <(sawhorse completion bash)"},
	}
}

const aboutInput = "- reads stdin.\n" +
	"  --batch  one object a line, one answer a line, in the same order\n" +
	"Exit 0 accepted, 1 refused, 2 wrong use."

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

func synopsis() string {
	var out strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&out, "  %-45s %s\n", c.name+" "+c.args, c.what)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func help(args []string) error {
	if len(args) == 0 {
		fmt.Println("usage: sawhorse COMMAND\n" + synopsis() + "\nsawhorse help COMMAND tells more.")
		return nil
	}
	c, known := find(args[0])
	if !known {
		return usage{fmt.Sprintf("sawhorse help COMMAND; %q is none of\n%s", args[0], synopsis())}
	}
	fmt.Printf("usage: %s\n%s.\n\n%s\n", c.use(), strings.ToUpper(c.what[:1])+c.what[1:], c.help)
	return nil
}

func runCompletion(_ context.Context, use string, args []string) error {
	if len(args) != 1 {
		return usage{use}
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	all := strings.Join(names, " ")
	switch args[0] {
	case "bash":
		fmt.Printf("_sawhorse() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\"\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W %q -- \"$word\"))\n    return\n  fi\n  case \"${COMP_WORDS[1]}\" in\n", all+" help")
		for _, c := range commands() {
			if len(c.flags) > 0 {
				fmt.Printf("    %s) COMPREPLY=($(compgen -f -W %q -- \"$word\")) ;;\n", c.name, strings.Join(c.flags, " "))
			}
		}
		fmt.Print("    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\ncomplete -F _sawhorse sawhorse\n")
	case "zsh":
		fmt.Print("#compdef sawhorse\n_sawhorse() {\n  if (( CURRENT == 2 )); then\n    local -a commands=(\n")
		for _, c := range commands() {
			fmt.Printf("      %q\n", c.name+":"+c.what)
		}
		fmt.Print("    )\n    _describe command commands\n    return\n  fi\n  case \"${words[2]}\" in\n")
		for _, c := range commands() {
			if len(c.flags) > 0 {
				fmt.Printf("    %s) compadd -- %s; _files ;;\n", c.name, strings.Join(c.flags, " "))
			}
		}
		fmt.Print("    *) _files ;;\n  esac\n}\ncompdef _sawhorse sawhorse\n")
	case "fish":
		for _, c := range commands() {
			fmt.Printf("complete -c sawhorse -n __fish_use_subcommand -a %s -d %q\n", c.name, c.what)
			for _, f := range c.flags {
				option := "-s " + strings.TrimPrefix(f, "-")
				if long, ok := strings.CutPrefix(f, "--"); ok {
					option = "-l " + long
				}
				fmt.Printf("complete -c sawhorse -n '__fish_seen_subcommand_from %s' %s\n", c.name, option)
			}
		}
	default:
		return usage{fmt.Sprintf("%s: not %q", use, args[0])}
	}
	return nil
}

// parse reads flags wherever they stand among the arguments, and gives the other arguments.
func parse(flags *flag.FlagSet, use string, args []string) ([]string, error) {
	flags.SetOutput(io.Discard)
	var rest []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, usage{use + ": " + err.Error()}
		}
		if flags.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, flags.Arg(0)), flags.Args()[1:]
	}
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

// rackArgument takes the rack's name from the arguments, of which it must be the only one.
func rackArgument(args []string, use string) (string, error) {
	if len(args) != 1 {
		return "", usage{use}
	}
	if !names.ValidRack(args[0]) {
		return "", usage{fmt.Sprintf("%s: %q is no rack's name: a-z first, then a-z, 0-9 and dashes, no dash at the end", use, args[0])}
	}
	return args[0], nil
}
