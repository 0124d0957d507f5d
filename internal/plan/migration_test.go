package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

func TestMigration(t *testing.T) {
	dedicated := []NodeGroupTaint{{Key: "dedicated", Value: "x", Effect: "NO_SCHEDULE"}}
	aCopy := map[string]string{ownership.TagRack: "demo", ownership.TagCluster: "arn:aws:eks:eu-central-1:123456789012:cluster/demo",
		ownership.TagReplaces: "old"}
	groups := []NodeGroup{
		{Name: "apps", Scaling: Scaling{Desired: 3}}, {Name: "system"}, {Name: "old-ondemand", Tags: aCopy},
		{Name: "special", Labels: map[string]string{"convox.io/label": "web"}, Taints: dedicated},
		{Name: "builds", Labels: map[string]string{"convox-build": "true"}, Taints: dedicated},
	}
	for _, c := range []struct {
		what   string
		config params.Config
		want   string
		// problems and warned are the parameter and a part of the message of each.
		problems []string
		warned   string
	}{
		{"one group", params.Config{Enabled: true, HighAvailability: true, MigrateNodeGroups: []string{"apps"}},
			"{[apps] [system old-ondemand] 2}", nil, ""},
		{"all, for one controller", params.Config{Enabled: true, MigrateNodeGroups: []string{"system", "apps", "old-ondemand"}},
			"{[apps old-ondemand system] [] 1}", nil, ""},
		{"a group that was replaced", params.Config{Enabled: true, SystemNodeGroups: []string{"old", "system", "apps"},
			MigrateNodeGroups: []string{"old"}}, "{[old-ondemand] [apps system] 1}", nil, ""},
		{"with Karpenter off", params.Config{MigrateNodeGroups: []string{"apps"}}, "{[] [] 0}", nil, ""},
		{"a typo, with Karpenter off", params.Config{MigrateNodeGroups: []string{"aps"}}, "{[] [] 0}",
			[]string{`migrate_node_groups: has the node group "aps", which cluster demo does not have; it has`}, ""},
		{"a typo leaves the roles of the others", params.Config{Enabled: true, MigrateNodeGroups: []string{"aps", "special"}}, "{[] [] 0}",
			[]string{`migrate_node_groups: "aps"`, `migrate_node_groups: "special", which is an additional group`}, ""},
		{"a build group without a pool", params.Config{Enabled: true, MigrateNodeGroups: []string{"builds"}}, "{[] [] 0}",
			[]string{`migrate_node_groups: "builds", which is a build group: without a pool for builds`}, ""},
		{"a build group with a pool", params.Config{Enabled: true, BuildNodes: true, MigrateNodeGroups: []string{"builds"}}, "{[] [] 0}",
			nil, "node group builds is a build group"},
	} {
		c.config.Rack, c.config.ClusterName, c.config.AuthMode = "demo", "demo", true
		facts := Facts{Cluster: &ClusterFacts{Status: "ACTIVE", Version: "1.35"}, NodeGroups: groups, PodIdentity: true,
			Subnets: []Tagged{{ID: "subnet-a"}}}
		made := Build(c.config, facts, nil)
		requireProblems(t, c.what, made.Problems, c.problems)
		if m := made.Plan.Nodegroups.Migration; len(m.Blocks) > 0 {
			t.Errorf("%s: %v", c.what, m.Blocks)
		}
		if got := migrationText(made.Plan.Nodegroups.Migration); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
		steps := slices.ContainsFunc(made.Plan.Steps, func(s Step) bool { return s.Name == MigrateStep })
		if wants := c.want != "{[] [] 0}"; steps != wants {
			t.Errorf("%s: the step is there: %v", c.what, steps)
		}
		warned := slices.ContainsFunc(made.Warnings, func(p params.Problem) bool { return p.Parameter == params.ParamMigrate })
		if warned != (c.warned != "") {
			t.Errorf("%s: %v", c.what, made.Warnings)
		}
	}
}

func migrationText(m Migration) string { return fmt.Sprintf("{%v %v %d}", m.Groups, m.Others, m.Keep) }

// The step stays until Karpenter is off, so that what was begun is ended and undone.
func TestTheStepOfAMigrationStays(t *testing.T) {
	fingerprints := map[string]bool{}
	for _, enabled := range []bool{true, false} {
		facts := Facts{Cluster: &ClusterFacts{Status: "ACTIVE", Version: "1.35"}, NodeGroups: []NodeGroup{{Name: "system"}},
			PodIdentity: true, Subnets: []Tagged{{ID: "subnet-a"}}, Records: Records{WasOn: true, HadMigration: true}}
		made := Build(params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: enabled}, facts, nil).Plan
		made.SetFingerprints()
		at := slices.IndexFunc(made.Steps, func(s Step) bool { return s.Name == MigrateStep })
		if at < 0 {
			t.Fatalf("enabled %v: %+v", enabled, made.Steps)
		}
		fingerprints[made.Steps[at].Fingerprint] = true
	}
	if len(fingerprints) != 2 {
		t.Error("with no group left to empty, turning off has nothing to do: the sizes would not come back")
	}
	inOrder(t, "sizes come back before there must be room", disable, MigrateStep, "nodegroups/capacity")
	inOrder(t, "nothing moves before the hand-over", of(enable, &builder{
		plan: Plan{Nodegroups: Nodegroups{Migration: Migration{Groups: []string{"apps"}}}}}), "nodepools", "proof", "autoscaler",
		"nodegroups/placement", MigrateStep)
}

func TestAPlanSaysWhatItMoves(t *testing.T) {
	facts := Facts{NodeGroups: []NodeGroup{{Name: "apps", Scaling: Scaling{Desired: 3}}, {Name: "more", Scaling: Scaling{Desired: 1}}},
		GroupPods: map[string]int{"apps": 40}}
	before, after := Plan{}, Plan{}
	before.Nodegroups.Migration.Groups = []string{"more"}
	after.Nodegroups.Migration.Groups = []string{"apps", "more"}
	var all []string
	for _, effect := range Emptied(&before, after, facts) {
		all = append(all, effect.String())
	}
	if want := []string{"node group apps is emptied: its 3 nodes (40 pods) are cordoned, emptied and ended one after the other, but those " +
		"that the system Deployments need, as PodDisruptionBudgets and karpenter.sh/do-not-disrupt allow"}; !slices.Equal(all, want) {
		t.Errorf("%q", all)
	}
	if all := Emptied(nil, after, facts); len(all) != 2 || all[1].Pods != nil || all[1].Change != events.GroupEmptied {
		t.Errorf("%+v", all)
	}
}
