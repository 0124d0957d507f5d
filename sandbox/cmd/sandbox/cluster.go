package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/sawhorse-io/sawhorse/sandbox/seed"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// cluster makes a further EKS cluster like demo, with a network and node groups of its own, and a stand-in for its API server.
func cluster(o options) error {
	if o.name == "" {
		return errors.New("the cluster has no name; write `sandbox cluster NAME`")
	}
	ctx := context.Background()
	environment, err := user.Read(ctx, o.environment())
	if err != nil {
		return fmt.Errorf("no sandbox runs here; `make sandbox` starts one: %w", err)
	}
	if err := seed.AWS(ctx, environment.AWS(), o.name); err != nil {
		return err
	}
	fmt.Printf("cluster %s\n", o.name)
	return nil
}
