package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/register"
)

func runRegister(ctx context.Context, args []string) error {
	const use = "sawhorse register RACK [--cluster NAME] [--rate N]"
	rack, rest, err := rackArgument(args, use)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("register", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	cluster := flags.String("cluster", "", "the EKS cluster, where its name is not the rack's")
	rate := flags.Float64("rate", 2.5, "writes a second; SSM takes 3 from an account unless its higher throughput is switched on")
	if err := flags.Parse(rest); err != nil || flags.NArg() > 0 || *rate <= 0 {
		return usage{use}
	}
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("AWS configuration: %w", err)
	}
	r := register.Register{
		SSM: ssm.NewFromConfig(aws), Paths: paths(), Interval: time.Duration(float64(time.Second) / *rate),
		Tell: func(name, action string) { fmt.Printf("%-40s %s\n", name, action) },
	}
	return r.Run(ctx, rack, *cluster)
}
