package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

func position(t *testing.T, order []Step, name string) int {
	t.Helper()
	at := slices.IndexFunc(order, func(s Step) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("there is no step %s", name)
	}
	return at
}

// inOrder requires each named step to come before those that follow it in the list.
func inOrder(t *testing.T, promise string, order []Step, names ...string) {
	t.Helper()
	for i := 1; i < len(names); i++ {
		if position(t, order, names[i-1]) > position(t, order, names[i]) {
			t.Errorf("%s: %s comes before %s", promise, names[i], names[i-1])
		}
	}
}

func TestPromisesOfTheOrders(t *testing.T) {
	for _, after := range []string{"autoscaler", "nodegroups/build", "nodegroups/pins"} {
		inOrder(t, "P4: nothing is taken away before the pools are Ready", enable, "nodepools", after)
	}
	inOrder(t, "builds have nodes before their pool goes", (&builder{}).enabling(), "nodegroups/build", "nodepools", "autoscaler")
	inOrder(t, "P4: room before the nodes go", disable, "autoscaler", "nodegroups/room", "nodepools")
	inOrder(t, "P4: room before the nodes go", disable, "nodegroups/build", "nodegroups/room", "nodepools")
	inOrder(t, "spec 6.2: a controller that is down is first brought up again", disable, "nodegroups/room", "controller/serve", "nodepools")
	for _, after := range []string{"queue", "infrastructure"} {
		inOrder(t, "P5: the controller ends after its nodes, before what it needs", disable, "nodepools", "controller/release", after)
	}
	inOrder(t, "spec 5", enable, "infrastructure", "queue", "controller/release", "nodepools")
	inOrder(t, "spec 3", prepare, "access", "network", "nodegroups/labels", "controller/crds")
	if prepare[0].Name != "access" {
		t.Error("spec 3.4: what only the API server can tell is checked before anything else is changed")
	}
}

func TestOrdersAreComplete(t *testing.T) {
	for name, order := range map[string][]Step{"prepare": prepare, "enable": enable, "disable": disable} {
		seen := map[string]bool{}
		for _, s := range order {
			if seen[s.Name] {
				t.Errorf("%s: %s stands there twice", name, s.Name)
			}
			seen[s.Name] = true
			if s.Why == "" || s.Deadline < 60 || s.Deadline > 5400 {
				t.Errorf("%s: %s: deadline %d, why %q", name, s.Name, s.Deadline, s.Why)
			}
		}
	}
	undone := func(order []Step) (all []string) {
		for _, s := range order {
			if s.Guards == "" {
				all = append(all, s.Name)
			}
		}
		slices.Sort(all)
		return all
	}
	if !slices.Equal(undone(enable), undone(disable)) {
		t.Errorf("what enabling does and disabling does not undo: %v, %v", undone(enable), undone(disable))
	}
}

// When Karpenter is turned on again in a cluster that was prepared long ago, the checks that need the API server come
// before the first step that changes something. They do not block turning it off.
func TestVacantComesFirst(t *testing.T) {
	on := &builder{plan: Plan{Goal: GoalKarpenter, Infrastructure: Infrastructure{Present: true}}}
	off := &builder{plan: Plan{Goal: GoalAccess}, facts: Facts{Records: Records{WasOn: true}}}
	on.plan.Steps, off.plan.Steps = on.steps(), off.steps()
	if off.plan.Steps[0].Name != "access" || off.plan.Steps[1].Name != "nodegroups/fit" {
		t.Errorf("spec 6.1: whether there is room is asked before anything is changed: %v", off.plan.Steps)
	}
	applied := map[string]string{}
	for _, s := range on.plan.Steps { // it was on before and is off now
		applied[s.Name] = s.Fingerprint
	}
	for _, s := range off.plan.Steps {
		if applied[s.Name] = s.Fingerprint; s.Name == "access/vacant" {
			t.Error("off looks for names that others hold")
		}
	}
	if due := on.plan.Due(applied); len(due) == 0 || due[0].Name != "access/vacant" {
		t.Errorf("due %v", due)
	}
}

// The deadline of a step that drains covers the drain window, Karpenter's grace periods after it and after deleting an
// EC2NodeClass, and EC2's own time.
func TestDrainsEndWithinTheirDeadlines(t *testing.T) {
	drains := append(slices.DeleteFunc(slices.Clone(disable), func(s Step) bool { return s.Name != "nodepools" }), retireGroups)
	for _, s := range drains {
		if s.Deadline < names.MaxDrainSeconds+600 {
			t.Errorf("%s: %d s, a drain may take %d s", s.Name, s.Deadline, names.MaxDrainSeconds)
		}
	}
	if len(drains) != 2 {
		t.Errorf("%v", drains)
	}
}

// A step runs again if and only if its part of the plan has changed.
func TestFingerprints(t *testing.T) {
	full := func() *Plan {
		return &Plan{
			Cluster:        Cluster{Name: "demo", ARN: "arn", OIDCIssuer: "https://a"},
			Access:         Access{Mode: "API"},
			Network:        Network{Subnets: []string{"subnet-1"}, SecurityGroups: []string{"sg-1"}},
			Nodegroups:     Nodegroups{System: []string{"system"}, Build: []string{"build"}, BuildEmpty: true, Pinned: []string{"a/b"}},
			Infrastructure: Infrastructure{Present: true, Tags: map[string]string{"a": "b"}},
			Queue:          Queue{Present: true, Name: "q"},
			Controller:     Controller{CRDs: true, Present: true, Version: "1", HighAvailability: true},
			NodePools:      NodePools{Objects: []Object{{"kind": "NodePool"}}},
			Autoscaler:     Autoscaler{State: AutoscalerOff},
		}
	}
	all := slices.Concat(prepare, enable)
	guards := append(slices.DeleteFunc(slices.Clone(disable), func(s Step) bool { return s.Guards == "" }), askFirst)
	for _, c := range []struct {
		what   string
		change func(*Plan)
		due    string
	}{
		{"nothing", func(*Plan) {}, ""},
		{"a new generation", func(p *Plan) { p.Generation++ }, ""},
		{"force", func(p *Plan) { p.Force = true }, ""},
		{"the access mode", func(p *Plan) { p.Access.Mode = "API_AND_CONFIG_MAP" }, "access access/vacant"},
		{"another cluster of this name", func(p *Plan) { p.Cluster.OIDCIssuer = "https://b" }, "access access/vacant"},
		{"a subnet", func(p *Plan) { p.Network.Subnets = append(p.Network.Subnets, "subnet-2") }, "network"},
		{"a security group", func(p *Plan) { p.Network.SecurityGroups = nil }, "network"},
		{"a system group", func(p *Plan) { p.Nodegroups.System = append(p.Nodegroups.System, "new") }, "nodegroups/labels"},
		{"a build group", func(p *Plan) { p.Nodegroups.Build = nil }, "nodegroups/build"},
		{"builds kept", func(p *Plan) { p.Nodegroups.BuildEmpty = false }, "nodegroups/build"},
		{"the pins", func(p *Plan) { p.Nodegroups.Pinned = nil }, "nodegroups/pins"},
		{"a role", func(p *Plan) { p.Infrastructure.Tags["a"] = "c" }, "infrastructure"},
		{"the queue", func(p *Plan) { p.Queue.Present = false }, "queue"},
		{"the version", func(p *Plan) { p.Controller.Version = "2" }, "controller/crds controller/release"},
		{"the replicas", func(p *Plan) { p.Controller.HighAvailability = false }, "controller/release"},
		{"a pool", func(p *Plan) { p.NodePools.Objects[0]["spec"] = 1 }, "nodepools"},
		{"the hand-over", func(p *Plan) { p.Autoscaler.State = AutoscalerBaseline }, "autoscaler"},
	} {
		before, after := full(), full()
		c.change(after)
		var due []string
		for _, s := range all {
			if before.fingerprint(s) != after.fingerprint(s) {
				due = append(due, s.Name)
			}
		}
		if got := strings.Join(due, " "); got != c.due {
			t.Errorf("%s: due %q, want %q", c.what, got, c.due)
		}
	}
	empty := (&Plan{}).fingerprint(Step{Name: "no step of ours"})
	for _, s := range slices.Concat(all, guards) {
		if full().fingerprint(s) == empty {
			t.Errorf("step %s: it has no part of the plan, so no change would make it due", s.Name)
		}
	}
}

func TestDue(t *testing.T) {
	p := &Plan{Steps: []Step{{Name: "a", Fingerprint: "1"}, {Name: "b", Fingerprint: "2"}}}
	for _, c := range []struct {
		applied map[string]string
		want    []Step
	}{
		{nil, p.Steps},
		{map[string]string{"a": "1", "b": "2"}, nil},
		{map[string]string{"a": "1", "b": "0"}, p.Steps[1:]},
		{map[string]string{"a": "1"}, p.Steps[1:]},
	} {
		if got := p.Due(c.applied); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.applied, got, c.want)
		}
	}
}

// A guard is due with the step that it guards, whatever was applied before, also when Karpenter is turned off a second
// time.
func TestGuardsAreDueWithWhatTheyGuard(t *testing.T) {
	p := &Plan{Steps: []Step{{Name: "guard", Guards: "b", Fingerprint: "1"}, {Name: "b", Fingerprint: "2"}, {Name: "c", Fingerprint: "3"}}}
	for _, c := range []struct {
		applied map[string]string
		want    []Step
	}{
		{nil, p.Steps},
		{map[string]string{"guard": "1", "b": "0", "c": "3"}, p.Steps[:2]},
		{map[string]string{"guard": "0", "b": "2", "c": "0"}, p.Steps[2:]},
		{map[string]string{"b": "2", "c": "3"}, nil},
	} {
		if got := p.Due(c.applied); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.applied, got, c.want)
		}
	}
	for _, order := range [][]Step{prepare, enable, disable} {
		for _, s := range order {
			if s.Guards != "" && position(t, order, s.Name) > position(t, order, s.Guards) {
				t.Errorf("%s guards %s and comes behind it", s.Name, s.Guards)
			}
		}
	}
}
