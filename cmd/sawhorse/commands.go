package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// commands returns all commands. It is a function because completion and help are among them.
func commands() []command {
	return []command{
		{
			name: "check", args: "[--batch] FILE|-", what: "tell whether parameters would be accepted", flags: []string{"--batch"}, files: true, run: runCheck,
			help: aboutInput + "\n\nPrints {\"accepted\", \"problems\", \"warnings\"}.\n" + aboutBatch + aboutExit,
		},
		{
			name: "render", args: "[--batch] [-o json|yaml] FILE|-", what: "print the NodePools and EC2NodeClasses",
			flags: []string{"--batch", "-o"}, formats: []string{"json", "yaml"}, files: true, run: runRender,
			help: aboutInput + "\n\nPrints the manifests in order of kind and name; none where Karpenter is off. What is wrong with a refused input goes to\n" +
				"stderr; with --batch it is that line's answer.\n" + aboutBatch + "  -o json|yaml  a JSON array, or YAML documents; json unless given\n" + aboutExit,
		},
		{
			name: "plan", args: "[-o text|json] FILE|-", what: "print what a pass would do", flags: []string{"-o"}, formats: []string{"text", "json"}, files: true, run: runPlan,
			help: aboutInput + "\n\nPrints the steps that differ from what was last applied (\"previous\"), and what becomes of each pool's nodes.\n" +
				"  -o text|json  lines for people, or one JSON object; text unless given\n" + aboutExit,
		},
		{
			name: "params", args: "[-o markdown|json]", what: "list every parameter", flags: []string{"-o"}, formats: []string{"markdown", "json"}, run: runParams,
			help: "Prints name, type, default, pattern and meaning of each.\n  -o markdown|json  tables, or a JSON array; markdown unless given",
		},
		{
			name: "register", args: "RACK [PARAMETER…] [--all] [--cluster NAME] [--rate N]", what: "create the rack's parameters in SSM, and let it into its cluster", flags: []string{"--all", "--cluster", "--rate"}, run: runRegister,
			help: "Creates parameters that are missing (value unset), each with its description and pattern, so that SSM itself refuses a bad value;\n" +
				"existing ones keep their value. Without names: the ones that turn Karpenter on, and those that are there. It can be stopped anywhere\n" +
				"and run again.\n\n" +
				"Before that it tags the cluster with " + names.TagRack + "=RACK, by which the cluster's owner lets the rack in: the cluster of --cluster, of the\n" +
				"parameter cluster_name, or of the rack's name. One that lets another rack in is refused, and nothing is written. Where there is no\n" +
				"such cluster yet, or these credentials may not tag it, it says on stderr what is left to be done: exit 0 all the same.\n" +
				"  --all           every parameter there is; a rack then has some 50 of the 10,000 that SSM holds in an account and region\n" +
				"  --cluster NAME  the EKS cluster, where its name is not the rack's; it is written to cluster_name\n" +
				"  --rate N        writes a second (default 2.5); SSM takes 3 from an account unless its higher throughput is switched on\n" + aboutCloud,
		},
		{
			name: "status", args: "RACK [--wait]", what: "print the rack's status", flags: []string{"--wait"}, run: runStatus,
			help: "Prints the status, and before it what a pass is at that runs now.\n" +
				"  --wait  wait until a pass has ended that has seen the parameters as they are, and print the status then\n" + aboutPasses + aboutCloud,
		},
		{
			name: "watch", args: "RACK", what: "follow a pass until it ends", run: runWatch,
			help: "A line for each step, until a pass has ended that has seen the parameters as they are, one that is over already too; then the status.\n" +
				aboutPasses + aboutCloud,
		},
		{
			name: "doctor", args: "RACK [-o text|json]", what: "look for what would hold Karpenter up", flags: []string{"-o"}, formats: []string{"text", "json"}, run: runDoctor,
			help: "Examines the rack's cluster and account, and changes nothing: before Karpenter is turned on, and whenever something is odd. Each\n" +
				"finding says what, why it matters and what to do. What may not be looked at is a finding too.\n" +
				"  -o text|json  lines for people, or one JSON object; text unless given\n" + aboutCloud + "\n" +
				"The cluster's API server is asked with the same credentials, as `aws eks get-token` makes them: no kubeconfig is read, so that it is\n" +
				"the rack's cluster that is examined, whatever kubectl's current context is.\n" +
				"Exit 0 nothing fails, 1 something fails, 2 wrong use, 3 nothing fails, but something could not be looked at.",
		},
		{
			name: "completion", args: "bash|zsh|fish", what: "print a completion script", words: shells, run: runCompletion,
			help: "bash  source <(sawhorse completion bash)\nzsh   source <(sawhorse completion zsh), behind compinit\nfish  sawhorse completion fish | source",
		},
	}
}

const (
	aboutInput = "Reads a JSON object from FILE, or from stdin for -. Flags may stand before and behind it.\n\n" +
		"  rack      the rack's name\n" +
		"  params    {name: text}; an absent one, an empty text and the word unset mean the default\n" +
		"  previous  the same, as last applied; left out for a new rack\n" +
		"  observed  what is known of the cluster, all of it optional; nodegroups has EKS's DescribeNodegroup answers"
	aboutBatch = "  --batch  one object a line, one answer a line, in the same order; an empty line has no answer\n"
	aboutExit  = "Exit 0 accepted, 1 refused, 2 wrong use."
	// aboutPasses describes the exit codes of the commands that report the result of parameters.
	aboutPasses = "Exit 0 Reconciled or Paused, 1 Rejected, Failed or without a status, 2 wrong use, 3 not known yet: a pass is running, or none has\n" +
		"seen the last write.\n"
	aboutCloud = "Uses the AWS credentials and region of its surroundings. SAWHORSE_PREFIX and SAWHORSE_STACK are for a stack that was\n" +
		"deployed with another prefix than " + names.DefaultPrefix + ", or under another name than " + names.DefaultStack + "."
)

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
		return unknownCommand(args[0])
	}
	fmt.Printf("usage: %s\n%s.\n\n%s\n", c.use(), strings.ToUpper(c.what[:1])+c.what[1:], c.help)
	return nil
}

func unknownCommand(name string) error {
	var all []string
	for _, c := range commands() {
		all = append(all, c.name)
	}
	return usage{"sawhorse COMMAND\n" + synopsis(), fmt.Sprintf("there is no command %q; %s", name, params.DidYouMean(name, all, "see below"))}
}

// parse parses flags anywhere among the arguments, and returns the other arguments.
func parse(flags *flag.FlagSet, use string, args []string) ([]string, error) {
	flags.SetOutput(io.Discard)
	var rest []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, usage{use, err.Error()}
		}
		if flags.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, flags.Arg(0)), flags.Args()[1:]
	}
}

// paths returns the Parameter Store paths of the stack that this command uses.
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

// rackArgument returns the rack's name, which must be the only argument.
func rackArgument(args []string, use string) (string, error) {
	if len(args) != 1 {
		return "", usage{use: use}
	}
	if wrong := params.RackName(args[0], false); wrong != nil {
		return "", usage{use, wrong.Message}
	}
	return args[0], nil
}
