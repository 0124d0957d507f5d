package infrastructure

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// What is set and unset within seconds is never left behind, although IAM and EKS show the state before: each aspect of
// the roles, of the association and of the access entry, and all of them together.
func TestTakenBack(t *testing.T) {
	tag := func(value string) func(*plan.Plan, *Step) {
		return func(p *plan.Plan, _ *Step) {
			p.Infrastructure.Tags = map[string]string{
				ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN, "team": value,
			}
		}
	}
	nothing := func(*plan.Plan, *Step) {}
	for what, c := range map[string]struct{ set, unset func(*plan.Plan, *Step) }{
		"attached policy": {func(p *plan.Plan, _ *Step) {
			p.Infrastructure.Nodes.Attached = append(p.Infrastructure.Nodes.Attached, "arn:aws:iam::aws:policy/AdministratorAccess")
		}, nothing},
		"inline policy": {func(p *plan.Plan, _ *Step) { p.Infrastructure.Controller.Policies["more"] = document("ec2:More") }, nothing},
		"policy's document": {
			func(p *plan.Plan, _ *Step) { p.Infrastructure.Controller.Policies["launch"] = document("ec2:*") }, nothing,
		},
		"trust":    {func(p *plan.Plan, _ *Step) { p.Infrastructure.Controller.Trust = document("sts:TagSession") }, nothing},
		"boundary": {func(_ *plan.Plan, i *Step) { i.NodeBoundary = "arn:aws:iam::123456789012:policy/other" }, nothing},
		"tags":     {tag("b"), tag("a")},
		"role":     {func(p *plan.Plan, _ *Step) { *p = *minimal() }, func(p *plan.Plan, _ *Step) { *p = *retiring() }},
		"all":      {nothing, func(p *plan.Plan, _ *Step) { *p = *wanted(false, true) }},
	} {
		t.Run(what, func(t *testing.T) {
			awsfake.TakenBack(t, func() (*awsfake.Cloud, func(bool) (time.Duration, error)) {
				cloud, step := begin()
				return cloud, func(set bool) (time.Duration, error) {
					p, i, change := wanted(true, true), *step, c.unset
					if set {
						change = c.set
					}
					change(p, &i)
					progress, err := i.Run(t.Context(), p, "")
					if len(progress.Warnings) > 0 { // a later pass removes the role
						return time.Minute, err
					}
					return progress.Wait, err
				}
			}, state)
		})
	}
}

// state returns what there is in IAM and EKS, without times and ids.
func state(cloud *awsfake.Cloud) any {
	var all []any
	for _, name := range slices.Sorted(maps.Keys(cloud.IAM.Roles)) {
		role := cloud.IAM.Roles[name]
		all = append(all, name, role.Trust, role.Inline, slices.Sorted(slices.Values(role.Attached)),
			*role.PermissionsBoundary.PermissionsBoundaryArn, roleTags(&role.Role))
	}
	for _, arn := range slices.Sorted(maps.Keys(cloud.EKS.Entries)) {
		all = append(all, arn, *cloud.EKS.Entries[arn].Type, cloud.EKS.Entries[arn].Tags)
	}
	for _, a := range cloud.EKS.Associations {
		all = append(all, *a.RoleArn, a.Tags)
	}
	return all
}

// An audit finds the policy that is to be detached, although IAM's list is one from before it was attached.
func TestAnAuditIsNotMisledByAnOlderRead(t *testing.T) {
	cloud, i := begin()
	complete(t, cloud, i, wanted(true, true))
	cloud.Pass(time.Hour)
	more := wanted(true, true)
	more.Infrastructure.Nodes.Attached = append(more.Infrastructure.Nodes.Attached, "arn:aws:iam::aws:policy/AdministratorAccess")
	cloud.Lag.Replicas = time.Nanosecond // the state before is kept
	if _, changes := run(t, i, more); !strings.Contains(changes, "AdministratorAccess") {
		t.Fatal(changes)
	}
	cloud.Lag.Replicas = resource.Lag
	cloud.Refused = readonly.ErrWouldWrite
	for range 20 {
		if progress, err := i.Run(t.Context(), wanted(true, true), ""); !errors.Is(err, readonly.ErrWouldWrite) {
			t.Fatalf("%+v, %v", progress, err)
		}
	}
}
