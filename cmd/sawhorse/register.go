package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/register"
)

// patientAttempts is the number of times a throttled call of SSM is tried. Listing parameters reads all parameters of
// the account page by page, and SSM allows 3 pages a second. The pauses between tries grow to 20 s.
const patientAttempts = 10

func unknownParameter(name string) string {
	var known []string
	for _, p := range params.Table {
		known = append(known, p.Name)
	}
	return fmt.Sprintf("there is no parameter %q; %s", name, params.DidYouMean(name, known, "sawhorse params lists those that there are"))
}

func registerCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "register RACK [PARAMETER…]", Short: "Create the rack's parameters in SSM, and let the rack into its cluster",
		Long: `Creates missing parameters with the value unset, each with its description and pattern, so that SSM itself refuses a bad
value. Existing parameters keep their value. Without names it creates the parameters that turn Karpenter on, and gives the
existing ones their pattern. You can stop it at any point and run it again.

Before that it sets the tag ` + ownership.TagRack + `=RACK on the cluster, by which the cluster's owner lets the rack in: the cluster of
--cluster, of the parameter cluster_name, or with the rack's name. If the cluster lets another rack in, nothing is written.
If there is no such cluster yet, or these credentials may not tag it, stderr says what remains to be done (exit code 0).

Exit codes: 0 registered, 1 failed or refused, 2 wrong use.` + aboutCloud,
		ValidArgsFunction: completeParameters,
	}
	all := c.Flags().Bool("all", false, "every parameter; SSM holds 10,000 in an account and region, and a rack then has some 65")
	cluster := c.Flags().String("cluster", "", "`NAME` of the EKS cluster if it is not the rack's; it is written to cluster_name")
	rate := c.Flags().Float64("rate", 2.5, "writes per second; SSM takes 3 from an account unless its higher throughput is on")
	format := outputFlag(c, "text", "json")
	c.Args = func(_ *cobra.Command, args []string) error { return registrable(args, *all, *rate) }
	c.RunE = func(c *cobra.Command, args []string) error {
		return runRegister(c.Context(), args[0], register.Wanted{Names: args[1:], All: *all, Cluster: *cluster}, *rate, *format)
	}
	return c
}

// registrable checks a command line of register.
func registrable(args []string, all bool, rate float64) error {
	if len(args) == 0 {
		return errors.New("RACK is missing")
	}
	if err := rackName(args[0]); err != nil {
		return err
	}
	if !(rate > 0) { // NaN is not less than or equal to 0
		return fmt.Errorf("--rate %v is no number of writes per second; write, for example, 2.5", rate)
	}
	if all && len(args) > 1 {
		return errors.New("--all is every parameter: leave the names out, or --all")
	}
	for _, name := range args[1:] {
		if _, known := params.Lookup(name); !known {
			return errors.New(unknownParameter(name))
		}
	}
	return nil
}

// completeParameters completes the names of parameters behind the rack.
func completeParameters(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, p := range params.Table {
		if len(args) > 0 && !slices.Contains(args[1:], p.Name) {
			names = append(names, cobra.CompletionWithDesc(p.Name, p.Description))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// registered is the JSON output of register.
type registered struct {
	Rack string `json:"rack"`
	// Done says what was done with each parameter, and with the cluster, in this order.
	Done []act `json:"done"`
	// Left describes work that others must do.
	Left string `json:"left,omitempty"`
}

type act struct {
	Subject string `json:"subject"`
	Action  string `json:"action"`
}

func runRegister(ctx context.Context, rack string, wanted register.Wanted, rate float64, format string) error {
	aws, err := account(ctx, config.WithRetryMaxAttempts(patientAttempts))
	if err != nil {
		return err
	}
	r := register.Register{
		SSM: ssm.NewFromConfig(aws), EKS: eks.NewFromConfig(aws), Paths: paths(), Interval: time.Duration(float64(time.Second) / rate),
	}
	made := registered{Rack: rack, Done: []act{}}
	r.Report = func(name, action string) {
		if made.Done = append(made.Done, act{name, action}); format == "text" {
			fmt.Printf("%-40s %s\n", name, action)
		}
	}
	var end error
	if made.Left, end = r.Run(ctx, rack, wanted); made.Left != "" {
		fmt.Fprintln(os.Stderr, "sawhorse:", made.Left)
	}
	if format == "json" {
		if err := printJSON(made); err != nil {
			return err
		}
	}
	return end
}
