// Package audit makes the audit of a rack from the environment of a function.
package audit

import (
	"context"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/pass/audit"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	pass "github.com/sawhorse-io/sawhorse/internal/pass/validate"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/wire/access"
	"github.com/sawhorse-io/sawhorse/internal/wire/autoscaler"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
	"github.com/sawhorse-io/sawhorse/internal/wire/controller"
	"github.com/sawhorse-io/sawhorse/internal/wire/infrastructure"
	"github.com/sawhorse-io/sawhorse/internal/wire/network"
	"github.com/sawhorse-io/sawhorse/internal/wire/nodegroups"
	"github.com/sawhorse-io/sawhorse/internal/wire/nodepools"
	"github.com/sawhorse-io/sawhorse/internal/wire/proof"
	"github.com/sawhorse-io/sawhorse/internal/wire/queue"
	"github.com/sawhorse-io/sawhorse/internal/wire/validate"
)

// New returns the audit of one rack. All that it looks with refuses to write, the records included. Only what a pass notes at its
// beginning is written, and the event that requests a pass. The steps read the same roles, access entries and node
// groups, so each audit, and each pass's look at the steps, sends equal reads once.
func New(env handler.Env) (func(context.Context, pass.Event) (pass.Answer, error), error) {
	bus, err := validate.Bus(env)
	if err != nil {
		return nil, err
	}
	if _, err := steps(env); err != nil {
		return nil, err
	}
	return (&audit.Audit{
		Store: env.ReadOnly().Store, Pass: beginning(env, auditor(env.ReadOnce), bus).Run, Request: bus.Request, Log: env.Log, Now: env.Now,
		Look: func(ctx context.Context, rack string, generation int64) (map[string]string, error) {
			once := env.ReadOnce()
			return beginning(once, auditor(func() handler.Env { return once }), bus).Audit(ctx, rack, generation)
		},
	}).Run, nil
}

// beginning returns the beginning of an iteration, which also observes the CNI.
func beginning(env handler.Env, auditor *audit.Steps, bus report.Bus) *pass.Validate {
	begins := validate.New(env, auditor, bus)
	begins.CNI = cni(cluster.Dial(env), eks.NewFromConfig(env.AWS), env.Log)
	return begins
}

// cni returns what observes where the VPC CNI of a cluster gets its credentials. Each observation connects anew: the function
// begins passes over many clusters, for longer than a token is valid.
func cni(dial k8s.Connector, associations eks.ListPodIdentityAssociationsAPIClient, log *slog.Logger) func(context.Context, plan.Cluster) (
	plan.CNI, error,
) {
	return func(ctx context.Context, of plan.Cluster) (found plan.CNI, err error) {
		client, err := k8s.ReadOnly(dial)(ctx, of)
		if err == nil {
			found, err = observe.CNI(ctx, associations, client, of.Name)
		}
		if err != nil {
			log.Warn("where the VPC CNI gets its credentials cannot be read; the policies of the nodes' roles stay as they are",
				"cluster", of.Name, "error", err.Error())
		}
		return found, err
	}
}

// auditor returns the auditor of all steps. look returns what the steps of one plan read with.
func auditor(look func() handler.Env) *audit.Steps {
	return audit.NewSteps(func() map[string]outcome.StepFunc {
		all, _ := steps(look()) // New has made them before, and the environment has not changed since
		return all
	})
}

// steps returns all steps of plans, by function, with one connection to the cluster.
func steps(env handler.Env) (map[string]outcome.StepFunc, error) {
	dial := k8s.ReadOnly(cluster.Dial(env))
	all := map[string]outcome.StepFunc{}
	for name, make := range map[string]func(handler.Env, k8s.Connector) (outcome.StepFunc, error){
		"access": access.New, "autoscaler": autoscaler.New, "controller": controller.New, "nodegroups": nodegroups.New,
		"nodepools": nodepools.New, "proof": proof.New,
	} {
		step, err := make(env, dial)
		if err != nil {
			return nil, err
		}
		all[name] = step
	}
	for name, make := range map[string]func(handler.Env) (outcome.StepFunc, error){
		"infrastructure": infrastructure.New, "network": network.New, "queue": queue.New,
	} {
		step, err := make(env)
		if err != nil {
			return nil, err
		}
		all[name] = step
	}
	return all, nil
}
