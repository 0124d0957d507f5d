package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/register"
)

func runRegister(ctx context.Context, use string, args []string) error {
	flags := flag.NewFlagSet("register", flag.ContinueOnError)
	cluster := flags.String("cluster", "", "the EKS cluster, where its name is not the rack's")
	rate := flags.Float64("rate", 2.5, "writes a second; SSM takes 3 from an account unless its higher throughput is switched on")
	rest, err := parse(flags, use, args)
	if err != nil {
		return err
	}
	if *rate <= 0 {
		return usage{use, fmt.Sprintf("--rate %v is no number of writes a second; write, for example, 2.5", *rate)}
	}
	rack, err := rackArgument(rest, use)
	if err != nil {
		return err
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
