package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

const (
	aboutInput = `Reads a JSON object from FILE, or from stdin for -:

  rack      the rack's name
  params    {name: text}; an absent one, an empty text and the word unset mean the default
  previous  the same, as last applied; left out for a new rack
  observed  known facts about the cluster, all optional; nodegroups has EKS's DescribeNodegroup answers

`
	aboutExit = "\n\nExit codes: 0 accepted, 1 refused, 2 wrong use."
	// aboutPasses describes the exit codes of the commands that report the result of parameters.
	aboutPasses = `

Exit codes: 0 Reconciled or Paused; 1 Rejected, Failed, without a status or, for status without --wait, Degraded; 2 wrong
use; 3 not known: a pass is running, no pass has seen the last write, or AWS could not be read.`
	aboutCloud = `

Uses the AWS credentials and region of the environment. If the stack was deployed with another prefix than ` + ownership.DefaultPrefix + `
or under another name than ` + ownership.DefaultStack + `, set SAWHORSE_PREFIX or SAWHORSE_STACK.`
)

const (
	withoutAWS = "without"
	withAWS    = "with"
)

// root returns the command with all its subcommands.
func root() *cobra.Command {
	all := &cobra.Command{
		Use: "sawhorse", Short: "Check, register and follow racks", SilenceErrors: true, SilenceUsage: true, Version: version(),
		Long: "sawhorse checks the parameters of racks as a pass would, registers racks, and follows their passes.",
	}
	all.SetFlagErrorFunc(explainedFlag)
	all.AddGroup(
		&cobra.Group{ID: withoutAWS, Title: "Commands that need no AWS account:"},
		&cobra.Group{ID: withAWS, Title: "Commands that use AWS:"},
	)
	for _, c := range []*cobra.Command{checkCommand(), renderCommand(), planCommand(), paramsCommand()} {
		c.GroupID = withoutAWS
		all.AddCommand(c)
	}
	for _, c := range []*cobra.Command{registerCommand(), diffCommand(), applyCommand(), exportCommand(), historyCommand(),
		rollbackCommand(), racksCommand(), statusCommand(), watchCommand(), costCommand(), whyCommand(), doctorCommand()} {
		c.GroupID = withAWS
		all.AddCommand(c)
	}
	all.AddCommand(versionCommand())
	all.InitDefaultHelpCmd()
	all.InitDefaultCompletionCmd()
	for _, c := range all.Commands() {
		switch c.Name() {
		case "help": // cobra's own ends with 0 for an unknown command
			c.RunE = helpFor
		case "completion": // the same for an unknown shell
			c.Args, c.RunE = cobra.ArbitraryArgs, completionFor
		}
	}
	return all
}

// run runs one command line. An error from before the command began is one in the command line.
func run(ctx context.Context, args []string) error {
	began, all := false, root()
	all.PersistentPreRun = func(*cobra.Command, []string) { began = true }
	all.SetArgs(args)
	c, err := all.ExecuteContextC(ctx)
	if err == nil || began && !errors.As(err, new(wrongUse)) {
		return err
	}
	return misused("%s\nSee `%s --help`.", strings.TrimSpace(err.Error()), c.CommandPath())
}

func helpFor(c *cobra.Command, args []string) error {
	about, _, err := c.Root().Find(args)
	if err != nil {
		return wrongUse{err}
	}
	about.InitDefaultHelpFlag()
	about.InitDefaultVersionFlag()
	return about.Help()
}

func completionFor(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	var shells []string
	for _, each := range c.Commands() {
		shells = append(shells, each.Name())
	}
	return misused("there is no completion for %q; allowed are %s", args[0], strings.Join(shells, ", "))
}

// explainedFlag adds the nearest flag to cobra's error about an unknown one.
func explainedFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	name := unknown.GetSpecifiedName()
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		name = group // of a long flag with one dash
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := params.Nearest(name, known); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// output is the value of the flag -o: one of the formats that the command has.
type output struct {
	allowed []string
	chosen  string
}

func (o *output) String() string { return o.chosen }
func (o *output) Type() string   { return strings.Join(o.allowed, "|") }

func (o *output) Set(format string) error {
	if !slices.Contains(o.allowed, format) {
		return fmt.Errorf("allowed are %s", strings.Join(o.allowed, ", "))
	}
	o.chosen = format
	return nil
}

// outputFlag adds the flag -o, --output. The first format is the default.
func outputFlag(c *cobra.Command, formats ...string) *string {
	o := &output{formats, formats[0]}
	c.Flags().VarP(o, "output", "o", "format of the output")
	if err := c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // only if the flag does not exist
	}
	return &o.chosen
}

// exactly returns a check that there is one argument for each of these words, and that the one for RACK is a rack's name.
func exactly(words ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(words):
			return fmt.Errorf("%s is missing", words[len(args)])
		case len(args) > len(words):
			return fmt.Errorf("there are %d arguments; allowed: %s", len(args), strings.Join(words, " and "))
		case words[0] == "RACK":
			return rackName(args[0])
		}
		return nil
	}
}

func rackName(name string) error {
	if wrong := params.RackName(name, false); wrong != nil {
		return errors.New(wrong.Message)
	}
	return nil
}

// account loads the AWS configuration. Without a region or credentials every call would fail, with an error that does
// not say what to do.
func account(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	quiet := config.WithLogger(logging.Nop{}) // what the SDK warns of on stderr, its connections, nobody can act on
	loaded, err := config.LoadDefaultConfig(ctx, append(options, quiet)...)
	if err != nil {
		return loaded, fmt.Errorf("AWS configuration: %w", err)
	}
	if loaded.Region == "" {
		return loaded, errors.New("AWS region: there is none; set AWS_REGION, or the region of the profile in AWS_PROFILE")
	}
	if _, err := loaded.Credentials.Retrieve(ctx); err != nil {
		return loaded, fmt.Errorf("AWS credentials: there are none that work; set AWS_PROFILE, or sign in so that "+
			"`aws sts get-caller-identity` works: %w", err)
	}
	return loaded, nil
}

// paths returns the Parameter Store paths of the stack that this command uses.
func paths() ownership.Paths {
	return ownership.Paths{Prefix: cmp.Or(os.Getenv("SAWHORSE_PREFIX"), ownership.DefaultPrefix)}
}

func stack() string { return cmp.Or(os.Getenv("SAWHORSE_STACK"), ownership.DefaultStack) }
