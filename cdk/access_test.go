package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Access entries grant access to clusters, up to administrator. The functions create, change and delete only their own
// entries and those of nodes.
func TestAccessEntriesArePinnedToOurRoles(t *testing.T) {
	pinned := map[string]func(condition string) bool{
		"Access": func(condition string) bool {
			return strings.Count(condition, `"Fn::GetAtt"`) == 9 && strings.Contains(condition, `{"ArnEquals":{"eks:p`) &&
				strings.Contains(condition, `"eks:principalArn":[{"Fn::GetAtt":["`)
		},
		"Infrastructure": func(condition string) bool {
			return strings.Contains(condition, `"ArnLike":{"eks:principalArn":[{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},`+
				`":iam::",{"Ref":"AWS::AccountId"},":role/sawhorse/*-karpenter-nodes"]]},{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},`+
				`":iam::",{"Ref":"AWS::AccountId"},":role/sawhorse/*-karpenter-build-nodes"]]}]}`)
		},
	}
	seen := map[string]int{}
	for _, g := range production.grants() {
		for _, a := range g.actions {
			action := a.(string)
			verb, eks := strings.CutPrefix(action, "eks:")
			if !eks || !strings.Contains(verb, "Access") || strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "List") {
				continue
			}
			function := strings.TrimSuffix(strings.TrimRight(g.where, "0123456789ABCDEF"), "RoleDefaultPolicy")
			if check := pinned[function]; check == nil || !check(text(g.condition)) {
				t.Errorf("%s: %s, condition %s", function, action, text(g.condition))
			}
			seen[function+" "+verb]++
		}
	}
	for _, want := range []string{"Access CreateAccessEntry", "Access UpdateAccessEntry", "Access DeleteAccessEntry",
		"Access AssociateAccessPolicy",
		"Infrastructure CreateAccessEntry", "Infrastructure DeleteAccessEntry"} {
		if seen[want] != 1 {
			t.Errorf("%s: %d statements", want, seen[want])
		}
	}
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
}

// The creator of an access entry for nodes must be allowed to pass their role to EC2.
func TestTheNodeRoleIsHandedToEC2(t *testing.T) {
	const condition = `{"StringEquals":{"iam:PassedToService":["ec2.amazonaws.com","ec2.amazonaws.com.cn"]}}`
	seen := 0
	for _, g := range production.grants() {
		if strings.HasPrefix(g.where, "Infrastructure") && slices.Contains(g.actions, any("iam:PassRole")) &&
			strings.Contains(text(g.resources), `:role/sawhorse/*-karpenter-nodes"`) {
			seen++
			if got := text(g.condition); got != condition || len(g.resources) != 2 ||
				!strings.Contains(text(g.resources[1]), `:role/sawhorse/*-karpenter-build-nodes"`) {
				t.Errorf("%s, condition %s", text(g.resources), got)
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d statements", seen)
	}
}

// Calls that change a cluster require its owner's tag, unless the deployment waives that (requireClusterTag=false). The
// access mode can only move forward, and no other cluster configuration can be changed.
func TestClustersAreChangedWithTheirOwnersTag(t *testing.T) {
	changes := []string{"eks:UpdateClusterConfig", "eks:CreateAccessEntry", "eks:CreatePodIdentityAssociation", "eks:CreateNodegroup"}
	for i, of := range []template{production, custom} {
		seen := map[string]bool{}
		for _, g := range of.grants() {
			for _, action := range changes {
				if !slices.Contains(g.actions, any(action)) {
					continue
				}
				seen[action] = true
				if tagged := strings.Contains(text(g.condition), `"StringLike":{"aws:ResourceTag/sawhorse.dev/rack":"*"}`); tagged != (i == 0) {
					t.Errorf("stack %d: %s: %s, condition %s", i, g.where, action, text(g.condition))
				}
				if action == "eks:UpdateClusterConfig" &&
					!strings.Contains(text(g.condition), `"StringEquals":{"eks:authenticationMode":"API_AND_CONFIG_MAP"}`) {
					t.Errorf("%s: %s, condition %s", g.where, action, text(g.condition))
				}
			}
		}
		if len(seen) != len(changes) {
			t.Errorf("stack %d: %v", i, seen)
		}
	}
}

// ownershipInCall is the condition that a call sets both ownership tags, the cluster's with the ARN of a cluster of the
// stack's account and region.
const ownershipInCall = `{"aws:RequestTag/sawhorse.dev/cluster":{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":eks:",` +
	`{"Ref":"AWS::Region"},":",{"Ref":"AWS::AccountId"},":cluster/*"]]},"aws:RequestTag/sawhorse.dev/rack":"*"}`

// Tags say whose a resource is: with sawhorse.dev/rack a cluster lets a rack in, and an association is one that Sawhorse may
// change. So no function tags clusters, and each call that tags sets both ownership tags, and no key of others.
func TestTaggingInEKSIsPinned(t *testing.T) {
	want := map[string]string{
		"Infrastructure": `{"ForAllValues:StringNotLike":{"aws:TagKeys":["Name","Rack","eks:eks-cluster-name","sawhorse.dev/queue",` +
			`"sawhorse.dev/replaces","sawhorse.dev/role","aws:*","karpenter.sh/*","karpenter.k8s.aws/*","kubernetes.io/*"]},` +
			`"StringLike":` + ownershipInCall + `}`,
		"Access":     `{"Null":{"aws:RequestTag/sawhorse.dev/role":"false"},"StringLike":` + ownershipInCall + `}`,
		"Nodegroups": `{"Null":{"aws:RequestTag/sawhorse.dev/replaces":"false"},"StringLike":` + ownershipInCall + `}`,
	}
	kinds := map[string][]string{
		"Access": {":access-entry/*"}, "Infrastructure": {":access-entry/*", ":podidentityassociation/*"}, "Nodegroups": {":nodegroup/*"},
	}
	for i, of := range []template{production, custom} {
		seen := map[string]int{}
		for _, g := range of.grants() {
			if !slices.ContainsFunc(g.actions, func(a any) bool { return a == "eks:TagResource" || a == "eks:UntagResource" }) {
				continue
			}
			function := strings.TrimSuffix(strings.TrimRight(g.where, "0123456789ABCDEF"), "RoleDefaultPolicy")
			seen[function]++
			if got := text(g.condition); got != want[function] || len(g.actions) != 1 {
				t.Errorf("stack %d: %s: %s, condition\n%s, want\n%s", i, function, text(g.actions), got, want[function])
			}
			for j, kind := range kinds[function] {
				if len(g.resources) != len(kinds[function]) || !strings.Contains(text(g.resources[j]), kind) {
					t.Errorf("stack %d: %s tags %s", i, function, text(g.resources))
				}
			}
		}
		if len(seen) != 3 || seen["Access"] != 1 || seen["Infrastructure"] != 1 || seen["Nodegroups"] != 1 {
			t.Errorf("stack %d: %v", i, seen)
		}
	}
}

// The keys of a rack's own tags, which passes add to what Sawhorse makes, are exactly those that IAM lets the function set.
func TestTheTagsOfARackPassTheCondition(t *testing.T) {
	refused := unreserved()["ForAllValues:StringNotLike"]
	for _, key := range append(slices.Clone(ownership.ReservedTags), ownership.ReservedTagPrefixes...) {
		if !strings.Contains(text(refused), `"`+key) {
			t.Errorf("%s: the parameter tags refuses it, and IAM does not: %s", key, text(refused))
		}
	}
	for _, own := range []string{ownership.TagRack, ownership.TagCluster} {
		if strings.Contains(text(refused), own) {
			t.Errorf("%s is refused, but what Sawhorse makes carries it", own)
		}
	}
}
