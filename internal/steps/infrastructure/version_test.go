package infrastructure

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// versioned returns the plan of a rack that runs one version of Karpenter and is to run another.
func versioned(t *testing.T, inForce, version string) *plan.Plan {
	t.Helper()
	made := plan.Build(params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: true, KarpenterVersion: version}, plan.Facts{
		Cluster: &plan.ClusterFacts{
			Cluster: plan.Cluster{
				Name: "demo", ARN: awsfake.ClusterARN, Account: awsfake.Account, Region: awsfake.Region, Partition: "aws",
			},
			Status: "ACTIVE", Version: "1.34",
		},
		PodIdentity: true, Subnets: []plan.Tagged{{ID: "subnet-a"}}, NodeGroups: []plan.NodeGroup{{Name: "system"}},
		Records: plan.Records{WasOn: true, Karpenter: plan.KarpenterRecord{Version: inForce, Planned: inForce}},
	}, nil)
	if len(made.Problems) > 0 {
		t.Fatal(made.Problems)
	}
	return &made.Plan
}

// actions returns the actions that the controller's policies allow.
func actions(cloud *awsfake.Cloud) string {
	var all []string
	for _, text := range cloud.IAM.Roles[controllerName].Inline {
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// The policies of the controller's role change in place, to those of a newer version and back, and the step waits until
// AWS knows what is new. Policies that a version does not have are removed.
func TestPoliciesOfAnotherVersion(t *testing.T) {
	cloud, i := begin()
	finish := func(p *plan.Plan) (changes []string, waited time.Duration) {
		t.Helper()
		for range 10 {
			progress, changed := run(t, i, p)
			if changed != "" {
				changes = append(changes, changed)
			}
			if progress.Wait == 0 {
				unchanged(t, cloud, i, p)
				return changes, waited
			}
			waited += progress.Wait
			cloud.Pass(progress.Wait)
		}
		t.Fatal("no end")
		return nil, 0
	}
	finish(versioned(t, "1.10.0", ""))
	older, names := actions(cloud), slices.Sorted(maps.Keys(cloud.IAM.Roles[controllerName].Inline))
	const newer = "ec2:DescribeInstanceStatus"
	if strings.Contains(older, newer) {
		t.Fatal(older)
	}
	cloud.Pass(time.Hour)
	up := versioned(t, "1.10.0", "1.12.1")
	changes, waited := finish(up)
	if !strings.Contains(actions(cloud), newer) || waited != i.Delay || len(changes) != 1 || !strings.HasPrefix(changes[0], "put policy ") {
		t.Errorf("changes %q, waited %s", changes, waited)
	}
	if strings.Contains(changes[0], "role "+nodesName) || strings.Contains(changes[0], "created") {
		t.Errorf("changes %q", changes)
	}

	t.Log("a version may split its policies in another way")
	up.Infrastructure.Controller.Policies = maps.Clone(up.Infrastructure.Controller.Policies)
	up.Infrastructure.Controller.Policies["more"] = document("ec2:RebootInstances")
	finish(up)

	t.Log("back")
	down := versioned(t, "1.12.1", "1.10.0")
	changes, _ = finish(down)
	if got := slices.Sorted(maps.Keys(cloud.IAM.Roles[controllerName].Inline)); actions(cloud) != older || !slices.Equal(got, names) {
		t.Errorf("policies %v, were %v; changes %q", got, names, changes)
	}
}
