package infrastructure

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const (
	buildName = "demo-karpenter-build-nodes"
	buildARN  = "arn:aws:iam::123456789012:role/sawhorse/demo-karpenter-build-nodes"
)

// minimal returns a plan whose build nodes have a role of their own.
func minimal() *plan.Plan {
	p := wanted(true, true)
	p.Infrastructure.BuildNodes = &plan.Role{Name: buildName, ARN: buildARN, Trust: document("sts:AssumeRole"),
		Attached: []string{"arn:aws:iam::aws:policy/A"}}
	return p
}

// retiring returns a plan whose build nodes had a role of their own before.
func retiring() *plan.Plan {
	p := wanted(true, true)
	p.Infrastructure.Retired = buildName
	return p
}

// The role of build nodes is made with the nodes' boundary, without further policies, and may join the cluster.
func TestBuildNodesGetARole(t *testing.T) {
	cloud, i := begin()
	complete(t, cloud, i, wanted(true, true))
	progress, _ := run(t, i, minimal())
	if progress.Wait == 0 {
		t.Error("nobody waited until AWS knows the role and its entry")
	}
	complete(t, cloud, i, minimal())
	role := cloud.IAM.Roles[buildName]
	if role == nil || *role.PermissionsBoundary.PermissionsBoundaryArn != nodeBound ||
		!slices.Equal(role.Attached, []string{"arn:aws:iam::aws:policy/A"}) {
		t.Fatalf("%+v", role)
	}
	if entry := cloud.EKS.Entries[buildARN]; entry == nil || entry.Type == nil || *entry.Type != nodeEntry {
		t.Errorf("entries %v", cloud.EKS.Entries)
	}
	progress, _ = run(t, i, minimal())
	if progress.Outputs[buildOutput] != buildARN || len(progress.Warnings) > 0 {
		t.Errorf("%+v", progress)
	}
	unchanged(t, cloud, i, minimal())
}

// A role that the plan does not have any more stays, with its entry and policies, as long as an instance profile of the
// cluster has it. No pass waits for that.
func TestTheRoleOfBuildNodesStaysUntilNoNodeHasIt(t *testing.T) {
	cloud, i := begin()
	complete(t, cloud, i, minimal())
	cloud.Pass(time.Hour)
	cloud.IAM.Profiles["demo_1"] = &awsfake.Profile{Path: "/karpenter/eu-central-1/demo/x/", Role: buildName}
	cloud.IAM.Profiles["demo_2"] = &awsfake.Profile{Path: "/karpenter/eu-central-1/demo/y/", Role: nodesName}
	for range 2 {
		progress, changes := run(t, i, retiring())
		if changes != "" || progress.Wait > 0 || progress.Outputs[buildOutput] != buildARN || len(progress.Warnings) != 1 ||
			!strings.Contains(progress.Warnings[0].Message, buildName+" is kept until no node has it any more") {
			t.Fatalf("%s %+v", changes, progress)
		}
	}
	if role := cloud.IAM.Roles[buildName]; role == nil || len(role.Attached) != 1 || cloud.EKS.Entries[buildARN] == nil {
		t.Fatalf("%+v, entries %v", role, cloud.EKS.Entries)
	}
	delete(cloud.IAM.Profiles, "demo_1")
	progress, changes := run(t, i, retiring())
	if changes != "deleted access entry of role "+buildName+", deleted role "+buildName || progress.Outputs[buildOutput] != "" ||
		len(progress.Warnings) > 0 {
		t.Errorf("%s %+v", changes, progress)
	}
	unchanged(t, cloud, i, retiring())
}

// Karpenter may have made a profile for a new role that IAM does not return yet. If the deletion then finds the role in
// use, the next look tries again, and the step does not wait.
func TestANewRoleOfBuildNodesStays(t *testing.T) {
	cloud, i := begin()
	complete(t, cloud, i, minimal())
	cloud.IAM.Roles[buildName].CreateDate = new(cloud.Now().Add(time.Minute - 2*resource.Lag))
	if progress, changes := run(t, i, retiring()); changes != "" || len(progress.Warnings) != 1 {
		t.Errorf("%s %+v", changes, progress)
	}
	cloud.Pass(time.Hour)
	cloud.IAM.Profiles["elsewhere"] = &awsfake.Profile{Path: "/", Role: buildName}
	if progress, _ := run(t, i, retiring()); progress.Wait > 0 || len(progress.Warnings) != 1 || cloud.IAM.Roles[buildName] == nil {
		t.Errorf("%+v", progress)
	}
	delete(cloud.IAM.Profiles, "elsewhere")
	if _, changes := run(t, i, retiring()); changes != "deleted role "+buildName {
		t.Error(changes)
	}
}

// Turning Karpenter off removes the role of build nodes too, also with the cluster, and also if the step is stopped
// anywhere. A role of that name that others have made stays.
func TestTheRoleOfBuildNodesGoesWithKarpenter(t *testing.T) {
	for _, gone := range []bool{false, true} {
		cloud, i := begin()
		complete(t, cloud, i, minimal())
		off := wanted(false, true)
		off.Cluster.Gone = gone
		complete(t, cloud, i, off)
		if len(cloud.IAM.Roles) > 0 || !gone && len(cloud.EKS.Entries) > 0 {
			t.Errorf("gone %v: %v, %v", gone, slices.Collect(maps.Keys(cloud.IAM.Roles)), cloud.EKS.Entries)
		}
	}
	cloud, i := begin()
	cloud.IAM.Roles[buildName] = &awsfake.Role{}
	complete(t, cloud, i, retiring())
	complete(t, cloud, i, wanted(false, true))
	if cloud.IAM.Roles[buildName] == nil {
		t.Error("the role of others is gone")
	}
}
