package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// positionOf returns the position of a step in an order.
func positionOf(t *testing.T, order []entry, name string) int {
	t.Helper()
	at := slices.IndexFunc(order, func(e entry) bool { return e.name == name })
	if at < 0 {
		t.Fatalf("there is no step %s", name)
	}
	return at
}

// inOrder requires each named step to come before those that follow it in the list.
func inOrder(t *testing.T, promise string, order []entry, names ...string) {
	t.Helper()
	for i := 1; i < len(names); i++ {
		if positionOf(t, order, names[i-1]) > positionOf(t, order, names[i]) {
			t.Errorf("%s: %s comes before %s", promise, names[i], names[i-1])
		}
	}
}

// of returns the entries that a plan of this kind has.
func of(order []entry, b *builder) []entry {
	return slices.DeleteFunc(slices.Clone(order), func(e entry) bool { return e.when != nil && !e.when(b) })
}

func TestPromisesOfTheOrders(t *testing.T) {
	pool := &builder{plan: Plan{Nodegroups: Nodegroups{BuildEmpty: true, Replaced: []Replacement{{}}}}}
	for _, after := range []string{"autoscaler", "nodegroups/build", "nodegroups/placement", "nodegroups/retire"} {
		inOrder(t, "nothing is taken away before the pools are Ready and have nodes", of(enable, pool), "nodepools", "proof", after)
	}
	inOrder(t, "system nodes stay", of(enable, pool), "nodegroups/copy", "controller/release")
	inOrder(t, "builds have nodes before their pool goes", of(enable, &builder{}), "nodegroups/build", "nodepools", "autoscaler")
	inOrder(t, "capacity before the nodes go", disable, "nodegroups/keep", "nodegroups/capacity", "nodepools")
	inOrder(t, "Karpenter is the only autoscaler until there is room", disable, "nodegroups/capacity", "autoscaler", "nodepools")
	inOrder(t, "capacity before the nodes go", disable, "nodegroups/build", "nodegroups/capacity", "nodepools")
	inOrder(t, "a controller that is down is first brought up again", disable, "nodegroups/capacity", "controller/serve", "nodepools")
	for _, after := range []string{"queue", "infrastructure"} {
		inOrder(t, "the controller ends after its nodes, before what it needs", disable, "nodepools", "controller/release", after)
	}
	inOrder(t, "what may refuse the CRDs that stay holds nothing up", disable, "nodepools", "infrastructure", "controller/crds")
	inOrder(t, "the controller comes after what it needs", enable, "infrastructure", "queue", "controller/release", "nodepools")
	inOrder(t, "access first", prepare, "access", "network", "nodegroups/labels", "controller/crds")
	if prepare[0].name != "access" {
		t.Error("what only the API server can tell is checked before anything else is changed")
	}
}

func TestOrdersAreComplete(t *testing.T) {
	used := map[string]bool{}
	for name, order := range map[string][]entry{"prepare": prepare, "enable": enable, "disable": disable, "abandon": abandon} {
		for _, replaced := range [][]Replacement{nil, {{}}} {
			for _, empty := range []bool{true, false} {
				b := &builder{plan: Plan{Goal: GoalKarpenter, Nodegroups: Nodegroups{BuildEmpty: empty, Replaced: replaced}}}
				b.plan.NodePools.Frozen = true
				for _, inForce := range []string{"", "1.0.0", "1.99.0"} { // of no version, an older and a newer one
					b.target.Version, b.facts.Records = "1.10.0", Records{WasOn: inForce != "", Karpenter: KarpenterRecord{Version: inForce}}
					seen := map[string]bool{}
					for _, e := range of(order, b) {
						if seen[e.name] {
							t.Errorf("%s has %s twice", name, e.name)
						}
						seen[e.name] = true
					}
					if lowering := map[string]bool{"1.99.0": true}[inForce]; b.lowers() != lowering {
						t.Errorf("from %q: lowers %v", inForce, !lowering)
					}
				}
			}
		}
		for _, e := range order {
			s := e.step()
			if used[s.Name] = true; s.Why == "" || s.Deadline < 60 || s.Deadline > 5400 {
				t.Errorf("%s: %s: deadline %d, why %q", name, s.Name, s.Deadline, s.Why)
			}
			if s.PrecheckFor != "" && name != "prepare" && positionOf(t, order, s.Name) > positionOf(t, order, s.PrecheckFor) {
				t.Errorf("%s: %s is a precheck for %s and comes behind it", name, s.Name, s.PrecheckFor)
			}
		}
	}
	for _, r := range table {
		if !used[r.name] {
			t.Errorf("no order has %s", r.name)
		}
	}
	undone := func(order []entry) (all []string) {
		for _, e := range of(order, &builder{plan: Plan{Nodegroups: Nodegroups{BuildEmpty: true}}}) {
			if e.step().PrecheckFor == "" && e.name != "controller/crds" && e.name != "network" { // CRDs and tags stay
				all = append(all, e.name)
			}
		}
		slices.Sort(all)
		return all
	}
	if done := undone(enable); !slices.Equal(done, undone(disable)) {
		t.Errorf("enabling does %v, and disabling undoes %v", done, undone(disable))
	}
}

// When Karpenter is turned on again in a cluster that was prepared long ago, the checks that need the API server come
// before the first step that changes something. They do not block turning it off.
func TestVacantComesFirst(t *testing.T) {
	on := &builder{plan: Plan{Goal: GoalKarpenter, Infrastructure: Infrastructure{Present: true}}}
	prepared := map[string]string{"access/conflicts": "c"}
	off := &builder{plan: Plan{Goal: GoalAccess}, facts: Facts{Records: Records{WasOn: true, Applied: prepared}}}
	on.plan.Steps, off.plan.Steps = on.steps(), off.steps()
	on.plan.SetFingerprints()
	off.plan.SetFingerprints()
	if off.plan.Steps[0].Name != "access" || off.plan.Steps[1].Name != "proof" || off.plan.Steps[2].Name != "nodegroups/fit" {
		t.Errorf("the capacity, without the pods of a proof, is checked before anything is changed: %v", off.plan.Steps)
	}
	named := func(name string) int {
		return slices.IndexFunc(off.plan.Steps, func(s Step) bool { return s.Name == name })
	}
	if named("network") < named("nodepools") {
		t.Error("a tag that AWS refuses would hold up turning off")
	}
	applied := map[string]string{}
	for _, s := range on.plan.Steps { // it was on before and is off now
		applied[s.Name] = s.Fingerprint
	}
	for _, s := range off.plan.Steps {
		if applied[s.Name] = s.Fingerprint; s.Name == "access/conflicts" {
			t.Error("off looks for names that others hold")
		}
	}
	if due := on.plan.Due(applied); len(due) == 0 || due[0].Name != "access/conflicts" {
		t.Errorf("due %v", due)
	}
}

// If turning on was refused for another Karpenter in the cluster, turning off tags none of its subnets and applies none of its CRDs.
func TestOffAfterARefusalPreparesNothing(t *testing.T) {
	for _, c := range []struct {
		applied           map[string]string
		offline, prepares bool
	}{
		{nil, true, true},
		{nil, false, false}, // the access mode is still being changed
		{map[string]string{"access": "a", FreezeStep: "f"}, false, false},
		{map[string]string{"access": "a", "proof": "p", FitStep: "f"}, false, false}, // turning off has begun
		{map[string]string{"access": "a", "access/conflicts": "c", "infrastructure": "i"}, false, true},
	} {
		b := &builder{plan: Plan{Goal: GoalAccess}, facts: Facts{Offline: c.offline, Records: Records{WasOn: true, Applied: c.applied}}}
		var got []string
		for _, s := range b.steps() {
			got = append(got, s.Name)
		}
		for _, step := range []string{"network", "nodegroups/labels", "controller/crds"} {
			if slices.Contains(got, step) != c.prepares {
				t.Errorf("after %v: %v", c.applied, got)
			}
		}
		if !slices.Contains(got, "infrastructure") || !slices.Contains(got, FitStep) {
			t.Errorf("after %v, what there may be is not removed: %v", c.applied, got)
		}
	}
}

// Before Karpenter is turned on, access/conflicts is a precheck for nothing: it is due if its own section has changed.
func TestAGuardOfWhatIsNotInTheOrder(t *testing.T) {
	b := &builder{plan: Plan{Goal: GoalAccess}}
	for _, s := range b.steps() {
		if s.PrecheckFor != "" {
			t.Errorf("%s is a precheck for %s", s.Name, s.PrecheckFor)
		}
	}
}

// The deadline of a step that drains covers the drain window, Karpenter's grace periods after it and after deleting an
// EC2NodeClass, and EC2's own time.
func TestDrainsEndWithinTheirDeadlines(t *testing.T) {
	for _, e := range []entry{{"nodepools", off, nil}, {"nodegroups/retire", on, nil}} {
		if s := e.step(); s.Deadline < ownership.MaxDrainSeconds+600 {
			t.Errorf("%s: %d s, a drain may take %d s", s.Name, s.Deadline, ownership.MaxDrainSeconds)
		}
	}
}

// A step runs again if and only if its section of the plan has changed.
func TestFingerprints(t *testing.T) {
	full := func() *Plan {
		return &Plan{
			Cluster:        Cluster{Name: "demo", ARN: "arn", OIDCIssuer: "https://a"},
			Access:         Access{Mode: "API"},
			Network:        Network{Subnets: []string{"subnet-1"}, SecurityGroups: []string{"sg-1"}},
			Nodegroups:     Nodegroups{System: []string{"system"}, Build: []string{"build"}, BuildEmpty: true, Pinned: []string{"a/b"}},
			Infrastructure: Infrastructure{Present: true, Tags: map[string]string{"a": "b"}},
			Queue:          Queue{Present: true, Name: "q"},
			Controller: Controller{CRDs: CRDs{Present: true, Version: "1"}, Release: Release{Present: true, Version: "1", Replicas: 2},
				DevicePlugin: Object{"kind": "DaemonSet"}},
			NodePools:  NodePools{Objects: []Object{{"kind": "NodePool"}}, Frozen: true},
			Proof:      Proof{Pods: []Object{{"kind": "Pod"}}},
			Autoscaler: Autoscaler{State: AutoscalerOff},
		}
	}
	for _, c := range []struct {
		what   string
		change func(*Plan)
		due    string
	}{
		{"nothing", func(*Plan) {}, ""},
		{"a new generation", func(p *Plan) { p.Generation++ }, ""},
		{"what comes back if the version fails", func(p *Plan) { p.Controller.Previous = &p.Controller.Release }, ""},
		{"force", func(p *Plan) { p.Force = events.Force{events.ForceRoom} }, ""},
		{"the access mode", func(p *Plan) { p.Access.Mode = "API_AND_CONFIG_MAP" }, "access access/conflicts"},
		{"a function's right in the cluster", func(p *Plan) {
			p.Access.Rights = map[string][]Right{"nodepools": {right("", "nodes", "list")}}
		}, "access access/conflicts"},
		{"another cluster of this name", func(p *Plan) { p.Cluster.OIDCIssuer = "https://b" }, "access access/conflicts"},
		{"a subnet", func(p *Plan) { p.Network.Subnets = append(p.Network.Subnets, "subnet-2") }, "network"},
		{"a security group", func(p *Plan) { p.Network.SecurityGroups = nil }, "network"},
		{"a system group", func(p *Plan) { p.Nodegroups.System = append(p.Nodegroups.System, "new") }, "nodegroups/labels"},
		{"a build group", func(p *Plan) { p.Nodegroups.Build = nil }, "nodegroups/build"},
		{"builds kept", func(p *Plan) { p.Nodegroups.BuildEmpty = false }, "nodegroups/build"},
		{"the pins", func(p *Plan) { p.Nodegroups.Pinned = nil }, "nodegroups/placement"},
		{"a role", func(p *Plan) { p.Infrastructure.Tags["a"] = "c" }, "infrastructure"},
		{"the queue", func(p *Plan) { p.Queue.Present = false }, "queue"},
		{"the version", func(p *Plan) { p.Controller.CRDs.Version, p.Controller.Release.Version = "2", "2" },
			"controller/crds controller/release"},
		{"the device plugin", func(p *Plan) { p.Controller.DevicePlugin = nil }, "controller/plugin"},
		{"an object of the chart", func(p *Plan) { p.Controller.Release.Objects = []Object{{"kind": "Service"}} }, "controller/release"},
		{"the replicas", func(p *Plan) { p.Controller.Release.Replicas = 1 }, "controller/release"},
		{"a pool", func(p *Plan) { p.NodePools.Objects[0]["spec"] = map[string]any{"weight": 1} }, "nodepools"},
		{"the hand-over", func(p *Plan) { p.Autoscaler.State = AutoscalerBaseline }, "autoscaler"},
	} {
		before, after := full(), full()
		before.Goal, after.Goal = GoalKarpenter, GoalKarpenter
		c.change(after)
		for _, e := range of(slices.Concat(prepare, enable), &builder{plan: *after}) {
			before.Steps, after.Steps = append(before.Steps, e.step()), append(after.Steps, e.step())
		}
		before.SetFingerprints()
		after.SetFingerprints()
		var due []string
		for i, s := range after.Steps {
			if s.Fingerprint != before.Steps[i].Fingerprint {
				due = append(due, s.Name)
			}
		}
		if got := strings.Join(due, " "); got != c.due {
			t.Errorf("%s: due %q, want %q", c.what, got, c.due)
		}
	}
	for _, r := range table {
		if slices.Contains([]string{"nodegroups/copy", "nodegroups/retire", "nodegroups/keep"}, r.name) {
			continue
		}
		if fingerprint(r.section(full())) == fingerprint(r.section(&Plan{})) {
			t.Errorf("step %s: its section is empty, so no change would make it due", r.name)
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

// A precheck is due with the step that it is for, whatever was applied before, also when Karpenter is turned off a
// second time.
func TestPrechecksAreDueWithTheirStep(t *testing.T) {
	p := &Plan{Steps: []Step{{Name: "guard", PrecheckFor: "b", Fingerprint: "1"}, {Name: "b", Fingerprint: "2"},
		{Name: "c", Fingerprint: "3"}}}
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
}
