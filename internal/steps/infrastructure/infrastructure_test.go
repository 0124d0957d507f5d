package infrastructure

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const (
	controllerName  = "demo-karpenter"
	nodesName       = "demo-karpenter-nodes"
	controllerARN   = "arn:aws:iam::123456789012:role/sawhorse/demo-karpenter"
	nodesARN        = "arn:aws:iam::123456789012:role/sawhorse/demo-karpenter-nodes"
	controllerBound = "arn:aws:iam::123456789012:policy/controller-boundary"
	nodeBound       = "arn:aws:iam::123456789012:policy/node-boundary"
)

// wanted returns a plan whose documents are short: package plan tests what it renders.
func wanted(present, podIdentity bool) *plan.Plan {
	p := &plan.Plan{
		Rack: "demo",
		Cluster: plan.Cluster{
			Name: "demo", ARN: awsfake.ClusterARN, Account: awsfake.Account, Region: awsfake.Region, Partition: "aws",
		},
		Infrastructure: plan.Infrastructure{
			Present: present, PodIdentity: podIdentity,
			Controller: plan.Role{Name: controllerName, ARN: controllerARN},
			Nodes:      plan.Role{Name: nodesName, ARN: nodesARN},
			Tags:       map[string]string{ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN},
		},
	}
	if present {
		p.Infrastructure.Controller.Trust = document("sts:AssumeRole")
		p.Infrastructure.Controller.Policies = map[string]plan.Document{
			"launch": document("ec2:RunInstances"), "queue": document("sqs:ReceiveMessage"),
		}
		p.Infrastructure.Nodes.Trust = document("sts:AssumeRole")
		p.Infrastructure.Nodes.Attached = []string{
			"arn:aws:iam::aws:policy/A", "arn:aws:iam::aws:policy/B", "arn:aws:iam::aws:policy/C", "arn:aws:iam::aws:policy/D",
		}
	}
	return p
}

// document returns a policy document with one action.
func document(action string) plan.Document {
	return plan.Document(`{"Statement":[{"Action":["` + action + `"],"Effect":"Allow"}],"Version":"2012-10-17"}`)
}

func begin() (*awsfake.Cloud, *Step) {
	cloud := awsfake.New()
	cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
	return cloud, &Step{IAM: cloud.IAM, EKS: cloud.EKS, ControllerBoundary: controllerBound, NodeBoundary: nodeBound,
		Delay: 15 * time.Second, Written: &store.Store{DB: cloud.Table}, Now: cloud.Now}
}

func run(t *testing.T, i *Step, p *plan.Plan) (outcome.Progress, string) {
	t.Helper()
	progress, err := i.Run(t.Context(), p, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range progress.Changes {
		got = append(got, c.Action+" "+c.Subject)
	}
	return progress, strings.Join(got, ", ")
}

func unchanged(t *testing.T, cloud *awsfake.Cloud, i *Step, p *plan.Plan) {
	t.Helper()
	cloud.Forget()
	if _, changes := run(t, i, p); changes != "" || len(cloud.Writes()) > 0 {
		t.Errorf("a second run: changes %q, writes %v", changes, cloud.Writes())
	}
}

func TestCreatesOnceAndRemovesAll(t *testing.T) {
	for _, podIdentity := range []bool{true, false} {
		cloud, i := begin()
		progress, changes := run(t, i, wanted(true, podIdentity))
		for _, part := range []string{"created role " + controllerName, "created role " + nodesName,
			"created access entry of role " + nodesName} {
			if !strings.Contains(changes, part) {
				t.Errorf("%q is not among %s", part, changes)
			}
		}
		if associated := len(cloud.EKS.Associations) == 1; associated != podIdentity {
			t.Errorf("pod identity %v: associations %v", podIdentity, cloud.EKS.Associations)
		}
		want := map[string]string{"karpenter_role_arn": controllerARN, "karpenter_node_role_arn": nodesARN}
		if !maps.Equal(progress.Outputs, want) {
			t.Errorf("outputs %v", progress.Outputs)
		}
		unchanged(t, cloud, i, wanted(true, podIdentity))

		progress, _ = run(t, i, wanted(false, podIdentity))
		if len(cloud.IAM.Roles)+len(cloud.EKS.Entries)+len(cloud.EKS.Associations) > 0 {
			t.Errorf("left: %v %v %v", cloud.IAM.Roles, cloud.EKS.Entries, cloud.EKS.Associations)
		}
		want = map[string]string{"karpenter_role_arn": "", "karpenter_node_role_arn": "", buildOutput: "", "baseline_nodes": ""}
		if !maps.Equal(progress.Outputs, want) {
			t.Errorf("outputs %v", progress.Outputs)
		}
		awsfake.Documented(t, want)
		unchanged(t, cloud, i, wanted(false, podIdentity))
	}
}

func TestRoles(t *testing.T) {
	cloud, i := begin()
	run(t, i, wanted(true, true))
	bounds := map[string]string{controllerName: controllerBound, nodesName: nodeBound}
	for name, role := range cloud.IAM.Roles {
		if *role.Path != "/sawhorse/" || role.PermissionsBoundary == nil || *role.PermissionsBoundary.PermissionsBoundaryArn != bounds[name] ||
			len(role.Tags) != 2 {
			t.Errorf("%s: path %s, boundary %v, tags %v", name, *role.Path, role.PermissionsBoundary, role.Tags)
		}
	}
	controller, nodes := cloud.IAM.Roles[controllerName], cloud.IAM.Roles[nodesName]
	planned := wanted(true, true).Infrastructure
	for role, want := range map[*awsfake.Role]plan.Role{controller: planned.Controller, nodes: planned.Nodes} {
		inline := map[string]string{}
		for name, document := range want.Policies {
			inline[name] = document.JSON()
		}
		if role.Trust != want.Trust.JSON() || !maps.Equal(role.Inline, inline) || !slices.Equal(role.Attached, want.Attached) {
			t.Errorf("role %s: %+v", want.Name, role)
		}
	}
	if entry := cloud.EKS.Entries[nodesARN]; *entry.Type != "EC2_LINUX" || len(entry.Tags) != 2 {
		t.Errorf("entry %+v", entry)
	}
}

// A stored plan may be older than the deployment. Its roles get the boundaries of the present deployment, without which
// the function may not write them.
func TestAStoredPlanGetsThePresentBoundaries(t *testing.T) {
	cloud, i := begin()
	stored, err := json.Marshal(wanted(true, true))
	if err != nil {
		t.Fatal(err)
	}
	run(t, i, wanted(true, true))
	i.ControllerBoundary, i.NodeBoundary = controllerBound+"-of-another-deployment", nodeBound+"-of-another-deployment"
	var last plan.Plan
	if err := json.Unmarshal(stored, &last); err != nil {
		t.Fatal(err)
	}
	_, changes := run(t, i, &last)
	const repaired = "repaired permissions boundary of role "
	if want := repaired + controllerName + ", " + repaired + nodesName; changes != want {
		t.Errorf("changes %s, want %s", changes, want)
	}
	for name, want := range map[string]string{controllerName: i.ControllerBoundary, nodesName: i.NodeBoundary} {
		if got := *cloud.IAM.Roles[name].PermissionsBoundary.PermissionsBoundaryArn; got != want {
			t.Errorf("role %s has the boundary %s, want %s", name, got, want)
		}
	}
	unchanged(t, cloud, i, &last)
}

func TestRepairsOnlyWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(*awsfake.Cloud)
		want  string
	}{
		{"no boundary", func(c *awsfake.Cloud) { c.IAM.Roles[nodesName].PermissionsBoundary = nil },
			"repaired permissions boundary of role " + nodesName},
		{"the boundary of an earlier stack", func(c *awsfake.Cloud) {
			c.IAM.Roles[controllerName].PermissionsBoundary = &iamtypes.AttachedPermissionsBoundary{
				PermissionsBoundaryArn: new("arn:aws:iam::123456789012:policy/earlier")}
		}, "repaired permissions boundary of role " + controllerName},
		{"the boundary of controllers on a node role", func(c *awsfake.Cloud) {
			c.IAM.Roles[nodesName].PermissionsBoundary = &iamtypes.AttachedPermissionsBoundary{PermissionsBoundaryArn: new(controllerBound)}
		}, "repaired permissions boundary of role " + nodesName},
		{"trust", func(c *awsfake.Cloud) { c.IAM.Roles[controllerName].Trust = `{"Version":"2012-10-17","Statement":[]}` },
			"repaired trust of role " + controllerName},
		{"a policy changed", func(c *awsfake.Cloud) {
			c.IAM.Roles[controllerName].Inline["queue"] = `{"Version":"2012-10-17"}`
		}, "put policy queue of role " + controllerName},
		{"a policy gone", func(c *awsfake.Cloud) { delete(c.IAM.Roles[controllerName].Inline, "launch") },
			"put policy launch of role " + controllerName},
		{"a policy too many", func(c *awsfake.Cloud) { c.IAM.Roles[controllerName].Inline["more"] = `{}` },
			"deleted policy more of role " + controllerName},
		{"a managed policy gone", func(c *awsfake.Cloud) { c.IAM.Roles[nodesName].Attached = c.IAM.Roles[nodesName].Attached[:3] },
			"attached arn:aws:iam::aws:policy/D role " + nodesName},
		{"a managed policy too many", func(c *awsfake.Cloud) {
			c.IAM.Roles[nodesName].Attached = append(slices.Clone(c.IAM.Roles[nodesName].Attached), "arn:more")
		}, "detached arn:more role " + nodesName},
		{"the node role gone", func(c *awsfake.Cloud) { delete(c.IAM.Roles, nodesName) },
			"created role demo-karpenter-nodes, attached arn:aws:iam::aws:policy/A role demo-karpenter-nodes, attached " +
				"arn:aws:iam::aws:policy/B role demo-karpenter-nodes, attached arn:aws:iam::aws:policy/C role demo-karpenter-nodes, " +
				"attached arn:aws:iam::aws:policy/D role demo-karpenter-nodes, deleted access entry of role demo-karpenter-nodes that did " +
				"not work, created access entry of role demo-karpenter-nodes"},
		{"the association gone", func(c *awsfake.Cloud) { clear(c.EKS.Associations) },
			"created pod identity association of service account kube-system/karpenter"},
		{"the association of another role", func(c *awsfake.Cloud) { c.EKS.Associations["a-1"].RoleArn = new("arn:other") },
			"repaired pod identity association of service account kube-system/karpenter"},
		{"the entry gone", func(c *awsfake.Cloud) { clear(c.EKS.Entries) }, "created access entry of role " + nodesName},
		{"an entry of the wrong type", func(c *awsfake.Cloud) { c.EKS.Entries[nodesARN].Type = new("STANDARD") },
			"deleted access entry of role demo-karpenter-nodes that did not work, created access entry of role demo-karpenter-nodes"},
		{"an entry older than the role", func(c *awsfake.Cloud) {
			c.EKS.Entries[nodesARN].CreatedAt = new(c.IAM.Roles[nodesName].CreateDate.Add(-time.Hour))
		},
			"deleted access entry of role demo-karpenter-nodes that did not work, created access entry of role demo-karpenter-nodes"},
	} {
		t.Run(c.what, func(t *testing.T) {
			cloud, i := begin()
			run(t, i, wanted(true, true))
			c.spoil(cloud)
			if _, changes := run(t, i, wanted(true, true)); changes != c.want {
				t.Errorf("changes %s\nwant %s", changes, c.want)
			}
			unchanged(t, cloud, i, wanted(true, true))
		})
	}
}

// pinned denies a call that tags without both ownership tags, as the function's policy does.
type pinned struct{ *awsfake.EKS }

func (p pinned) TagResource(ctx context.Context, in *eks.TagResourceInput, options ...func(*eks.Options)) (*eks.TagResourceOutput, error) {
	if !ownership.Owned(in.Tags, "demo", awsfake.ClusterARN) {
		return nil, &types.AccessDeniedException{}
	}
	return p.EKS.TagResource(ctx, in, options...)
}

// A change of the rack's tags reaches all existing resources. Tags are added and changed but never removed, because
// others may have set them. An access entry that an administrator created stays untagged: with our ownership tags
// Sawhorse would later delete it.
func TestTagsFollowTheRack(t *testing.T) {
	tagged := []string{"tagged role " + controllerName, "tagged role " + nodesName,
		"tagged pod identity association of service account kube-system/karpenter", "tagged access entry of role " + nodesName}
	cloud, i := begin()
	i.EKS = pinned{cloud.EKS}
	run(t, i, wanted(true, true))
	for _, role := range cloud.IAM.Roles {
		role.Tags = append(role.Tags, iamtypes.Tag{Key: new("theirs"), Value: new("x")})
	}
	cloud.EKS.Associations["a-1"].Tags["theirs"] = "x"
	cloud.EKS.Entries[nodesARN].Tags["theirs"] = "x"
	want := map[string]string{"theirs": "x", ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN}
	for _, set := range []map[string]string{{"team": "a"}, {"team": "b"}, {"cost": "7"}} {
		p := wanted(true, true)
		maps.Copy(p.Infrastructure.Tags, set)
		maps.Copy(want, set)
		cloud.Forget()
		if _, changes := run(t, i, p); changes != strings.Join(tagged, ", ") || len(cloud.Changes()) != len(tagged) {
			t.Errorf("%v: changes %s, writes %v", set, changes, cloud.Changes())
		}
		for name, role := range cloud.IAM.Roles {
			if got := roleTags(&role.Role); !maps.Equal(got, want) {
				t.Errorf("%v: role %s has %v, want %v", set, name, got, want)
			}
		}
		if a, e := cloud.EKS.Associations["a-1"].Tags, cloud.EKS.Entries[nodesARN].Tags; !maps.Equal(a, want) || !maps.Equal(e, want) {
			t.Errorf("%v: association %v, entry %v, want %v", set, a, e, want)
		}
		unchanged(t, cloud, i, p)
	}
	cloud.EKS.Entries[nodesARN].Tags = map[string]string{"admin": "me"}
	cloud.Pass(resource.Lag)
	unchanged(t, cloud, i, wanted(true, true))
}

// Policies that the plan no longer lists in node_policy_arns are detached.
func TestNodePoliciesFollowThePlan(t *testing.T) {
	cloud, i := begin()
	p := wanted(true, true)
	p.Infrastructure.Nodes.Attached = append(p.Infrastructure.Nodes.Attached, "arn:aws:iam::123456789012:policy/own")
	run(t, i, p)
	unchanged(t, cloud, i, p)
	if _, changes := run(t, i, wanted(true, true)); changes != "detached arn:aws:iam::123456789012:policy/own role "+nodesName {
		t.Errorf("changes %s", changes)
	}
	if got := cloud.IAM.Roles[nodesName].Attached; !slices.Equal(got, wanted(true, true).Infrastructure.Nodes.Attached) {
		t.Errorf("attached %v", got)
	}
}

func TestForeignResources(t *testing.T) {
	for _, c := range []struct {
		what      string
		spoil     func(*awsfake.Cloud)
		parameter string
	}{
		{"a role without marks", func(c *awsfake.Cloud) { c.IAM.Roles[controllerName].Tags = nil }, "rack"},
		{"a role of the same rack in another region", func(c *awsfake.Cloud) {
			for at, tag := range c.IAM.Roles[nodesName].Tags {
				if *tag.Key == ownership.TagCluster {
					c.IAM.Roles[nodesName].Tags[at].Value = new("arn:aws:eks:us-east-1:123456789012:cluster/demo")
				}
			}
		}, "rack"},
		{"an association without marks", func(c *awsfake.Cloud) { c.EKS.Associations["a-1"].Tags = nil }, "karpenter_enabled"},
	} {
		t.Run(c.what, func(t *testing.T) {
			cloud, i := begin()
			run(t, i, wanted(true, true))
			c.spoil(cloud)
			cloud.Forget()
			_, err := i.Run(t.Context(), wanted(true, true), "")
			var rejected *outcome.Rejected
			if !errors.As(err, &rejected) || rejected.Problems[0].Parameter != c.parameter || len(cloud.Writes()) > 0 {
				t.Errorf("%v, writes %v", err, cloud.Writes())
			}
			before := len(cloud.IAM.Roles) + len(cloud.EKS.Associations)
			if _, err := i.Run(t.Context(), wanted(false, true), ""); err != nil {
				t.Fatal(err)
			}
			if left := len(cloud.IAM.Roles) + len(cloud.EKS.Associations); before != 3 || left != 1 {
				t.Errorf("%d of %d are left; only the one that is not ours may be", left, before)
			}
		})
	}
}

// An access entry that an administrator created for the node role is used, and it stays when Karpenter is removed.
// IAM cannot move a role, and the function may change roles of the stack's path only.
func TestARoleWithAnotherPathIsLeftAsItIs(t *testing.T) {
	cloud, step := begin()
	p := wanted(true, true)
	run(t, step, p)
	before := len(cloud.Writes())
	for _, role := range []*plan.Role{&p.Infrastructure.Controller, &p.Infrastructure.Nodes} {
		role.ARN = strings.Replace(role.ARN, "/sawhorse/", "/team/sawhorse/", 1)
	}
	_, err := step.Run(t.Context(), p, "")
	if err == nil || !strings.Contains(err.Error(), "has the path /sawhorse/, and the stack was deployed for /team/sawhorse/") {
		t.Error(err)
	}
	if writes := cloud.Writes()[before:]; len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
}

func TestLeavesAForeignEntry(t *testing.T) {
	cloud, i := begin()
	run(t, i, wanted(true, true))
	cloud.EKS.Entries[nodesARN].Tags = nil
	run(t, i, wanted(false, true))
	if len(cloud.EKS.Entries) != 1 {
		t.Error("the entry has gone")
	}
}

// If an instance profile that is not Karpenter's holds the role, the step waits and the profile stays.
func TestWaitsForARoleInAnInstanceProfile(t *testing.T) {
	cloud, i := begin()
	run(t, i, wanted(true, true))
	cloud.IAM.Profiles["somebody's"] = &awsfake.Profile{Path: "/", Role: nodesName}
	progress, _ := run(t, i, wanted(false, true))
	if progress.Wait <= 0 || progress.Wait > 30*time.Second || !strings.Contains(progress.Note, nodesName) || len(progress.Outputs) > 0 {
		t.Errorf("%+v", progress)
	}
	if cloud.IAM.Roles[nodesName] == nil || cloud.IAM.Roles[controllerName] != nil {
		t.Errorf("roles %v", slices.Sorted(maps.Keys(cloud.IAM.Roles)))
	}
	delete(cloud.IAM.Profiles, "somebody's")
	if progress, _ := run(t, i, wanted(false, true)); progress.Wait != 0 || len(cloud.IAM.Roles) > 0 || len(progress.Outputs) != 4 {
		t.Errorf("%+v, roles %v", progress, cloud.IAM.Roles)
	}
}

func TestInterrupted(t *testing.T) {
	state := func(cloud *awsfake.Cloud) any {
		all := []any{}
		for _, name := range slices.Sorted(maps.Keys(cloud.IAM.Roles)) {
			role := cloud.IAM.Roles[name]
			all = append(all, name, role.Trust, role.Inline, role.Attached, roleTags(&role.Role))
		}
		for _, a := range cloud.EKS.Associations {
			all = append(all, *a.RoleArn, a.Tags)
		}
		for arn, entry := range cloud.EKS.Entries {
			all = append(all, arn, *entry.Type, entry.Tags)
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	retagged := wanted(true, true)
	retagged.Infrastructure.Tags["team"] = "a"
	for _, c := range []struct{ before, plan *plan.Plan }{
		{nil, wanted(true, true)},
		{wanted(true, true), wanted(false, true)},
		{wanted(true, true), retagged},
	} {
		awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
			cloud, i := begin()
			if c.before != nil {
				run(t, i, c.before)
				cloud.Forget()
			}
			return cloud, func() (bool, error) {
				progress, err := i.Run(t.Context(), c.plan, "")
				return progress.Wait == 0, err
			}
		}, state)
	}
}
