package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

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

func runRegister(ctx context.Context, use string, args []string) error {
	flags := flag.NewFlagSet("register", flag.ContinueOnError)
	cluster := flags.String("cluster", "", "the EKS cluster, where its name is not the rack's")
	all := flags.Bool("all", false, "every parameter there is")
	rate := flags.Float64("rate", 2.5, "writes a second; SSM takes 3 from an account unless its higher throughput is switched on")
	rest, err := parse(flags, use, args)
	if err != nil {
		return err
	}
	if *rate <= 0 {
		return usage{use, fmt.Sprintf("--rate %v is no number of writes a second; write, for example, 2.5", *rate)}
	}
	rack, err := rackArgument(rest[:min(1, len(rest))], use)
	if err != nil {
		return err
	}
	wanted := register.Wanted{Names: rest[1:], All: *all, Cluster: *cluster}
	if wanted.All && len(wanted.Names) > 0 {
		return usage{use, "--all is every parameter: leave the names out, or --all"}
	}
	for _, name := range wanted.Names {
		if _, known := params.Lookup(name); !known {
			return usage{use, unknownParameter(name)}
		}
	}
	aws, err := config.LoadDefaultConfig(ctx, config.WithRetryMaxAttempts(patientAttempts))
	if err != nil {
		return fmt.Errorf("AWS configuration: %w", err)
	}
	r := register.Register{
		SSM: ssm.NewFromConfig(aws), EKS: eks.NewFromConfig(aws), Paths: paths(), Interval: time.Duration(float64(time.Second) / *rate),
		Tell: func(name, action string) { fmt.Printf("%-40s %s\n", name, action) },
	}
	left, err := r.Run(ctx, rack, wanted)
	if left != "" {
		fmt.Fprintln(os.Stderr, "sawhorse:", left)
	}
	return err
}
