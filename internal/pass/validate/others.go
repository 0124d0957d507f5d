package validate

import (
	"context"
	"errors"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
)

// question asks the cluster whether what others have in it is in the way of a change. The answer is then a *outcome.Rejected.
type question func(ctx context.Context, client *k8s.Client) error

// asked returns what is asked before a change of a rack with Karpenter is accepted, so that no step refuses it after another has changed
// something. What is in force is not asked again: only its step refuses it, so that passes still repair what comes before that.
func (in input) asked() (all []question) {
	config, inForce := in.parsed.Config, in.inForce
	if !config.Enabled || inForce == nil || inForce.Goal != plan.GoalKarpenter {
		return nil
	}
	if config.Autoscaler != inForce.Autoscaler.Deployment {
		all = append(all, func(ctx context.Context, client *k8s.Client) error {
			deployments, err := client.List(ctx, k8s.Deployment, "", "")
			if err != nil {
				return err
			}
			_, err = refusals.Autoscaler(deployments, in.rack, config.Autoscaler)
			return err
		})
	}
	if config.NVIDIADevicePlugin && inForce.Controller.DevicePlugin == nil {
		all = append(all, func(ctx context.Context, client *k8s.Client) error {
			return refusals.UnmanagedDevicePlugin(ctx, client, in.rack)
		})
	}
	if refusals.ClassOf(config.ControllerValues) != refusals.ClassOf(inForce.Controller.Release.Values) {
		all = append(all, func(ctx context.Context, client *k8s.Client) error {
			return refusals.PriorityClass(ctx, client, config.ControllerValues)
		})
	}
	target := plan.Target(config, in.facts)
	brings := slices.DeleteFunc(slices.Clone(target.CRDNames), func(name string) bool {
		return slices.Contains(inForce.Controller.CRDs.Definitions, name)
	})
	if len(brings) > 0 {
		all = append(all, func(ctx context.Context, client *k8s.Client) error {
			found, err := client.UnmanagedCRDs(ctx, brings)
			if err != nil || len(found) == 0 {
				return err
			}
			return refusals.CRDs(found, target.Version, inForce.Controller.Release.Version)
		})
	}
	return all
}

// isFirst reports whether no plan of the rack was accepted yet.
func (in input) isFirst() bool { return in.records.Goal == "" }

// reach adds a problem to the facts of a rack's first plan if the functions cannot reach the cluster's API server. The first step would
// change the cluster's access mode, for good, before it connects. Every answer counts, also a refusal: the function has no access entry
// yet. Each cluster is asked once in an iteration, whatever changes are judged.
func (v *Validate) reach(ctx context.Context, in *input) {
	cluster := in.facts.Cluster.Cluster
	out, asked := in.outOfReach[cluster.Name]
	if !asked {
		client, err := v.Dial(ctx, cluster)
		if err == nil {
			_, err = client.Serves(ctx, "apps/v1")
		}
		if unreachable := (*outcome.Unreachable)(nil); errors.As(err, &unreachable) {
			out = []params.Problem{params.NewProblem("karpenter_auth_mode", "", "karpenter_auth_mode is true, but Sawhorse cannot reach the "+
				"cluster: %v. %s The next audit tries again.", unreachable, outcome.Reach)}
		}
		in.outOfReach[cluster.Name] = out
	}
	in.facts.Refused = append(in.facts.Refused, out...)
}

// ask adds the answer to a question to the facts. What the function may not read, or cannot, is no answer: the step then refuses it.
func (in *input) ask(ctx context.Context, client *k8s.Client, asks question) {
	err := asks(ctx, client)
	var rejected *outcome.Rejected
	if errors.As(err, &rejected) {
		in.facts.Refused = append(in.facts.Refused, rejected.Problems...)
	}
	*in.silent = errors.As(err, new(*outcome.Unreachable))
}
