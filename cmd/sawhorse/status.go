package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/rack"
)

func runStatus(ctx context.Context, use string, args []string) error {
	name, err := rackArgument(args, use)
	if err != nil {
		return err
	}
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("AWS configuration: %w", err)
	}
	status, err := readStatus(ctx, aws, name)
	if err != nil {
		return err
	}
	return show(status)
}

func readStatus(ctx context.Context, aws aws.Config, name string) (rack.Status, error) {
	var status rack.Status
	place := paths().Status(name)
	out, err := ssm.NewFromConfig(aws).GetParameter(ctx, &ssm.GetParameterInput{Name: &place})
	if errors.As(err, new(*types.ParameterNotFound)) {
		return status, fmt.Errorf("rack %s has no status: no pass has had anything to say about it yet", name)
	}
	if err != nil {
		return status, fmt.Errorf("parameter %s: read: %w", place, err)
	}
	if err := json.Unmarshal([]byte(*out.Parameter.Value), &status); err != nil {
		return status, fmt.Errorf("parameter %s: decode: %w", place, err)
	}
	return status, nil
}

// show prints a status for people; a rack that is not as its parameters say is an error, for scripts.
func show(s rack.Status) error {
	fmt.Printf("%s  generation %d  %s  %.1f s\n", s.State, s.Generation, s.Time, s.DurationSeconds)
	list := func(title string, problems []params.Problem) {
		for _, p := range problems {
			fmt.Printf("%s  %s\n", title, line(p))
		}
	}
	list("problem", s.Problems)
	list("warning", s.Warnings)
	if f := s.Failure; f != nil {
		where := ""
		if f.Step != "" { // else nobody knows how far the pass came
			where = "step " + f.Step + ": "
		}
		fmt.Printf("failure  %s%s: %s\n         %s\n", where, f.Error, f.Reason, f.Remedy)
	}
	for _, step := range s.Steps {
		fmt.Printf("step     %s\n", step)
	}
	for _, p := range s.Pools {
		fmt.Println(p)
	}
	for _, c := range s.Changed {
		fmt.Printf("changed  %s\n", c)
	}
	if s.Omitted > 0 {
		fmt.Printf("and %d more, complete in the rack's record and in the event\n", s.Omitted)
	}
	if s.State == rack.Rejected || s.State == rack.Failed {
		return fmt.Errorf("rack %s is %s", s.Rack, s.State)
	}
	return nil
}
