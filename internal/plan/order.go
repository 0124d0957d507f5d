package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// prepare is what karpenter_auth_mode brings about, once (spec 3). What only the API server can tell comes before anything
// else is changed (the second step), and again when Karpenter is turned on.
var prepare = []Step{
	{Name: "access", Deadline: 900, Why: "cluster access mode, access entries and the rights of Sawhorse's own functions"},
	{Name: "access/vacant", Deadline: 300, Why: "names in the cluster that others hold"},
	{Name: "network", Deadline: 300, Why: "discovery tags on subnets and security groups"},
	{Name: "nodegroups/labels", Deadline: 900, Why: "label of the system node groups"},
	{Name: "controller/crds", Deadline: 300, Why: "Karpenter's CRDs"},
}

// enable is what karpenter_enabled brings about (spec 5). Capacity that exists is given up only behind nodepools, the step
// that waits until Karpenter's pools are Ready.
var enable = []Step{
	{Name: "infrastructure", Deadline: 600, Why: "roles, credentials of the controller, access entry of the nodes"},
	{Name: "queue", Deadline: 300, Why: "interruption queue and its rule"},
	{Name: "controller/release", Deadline: 900, Why: "Karpenter's controller"},
	{Name: "controller/plugin", Deadline: 300, Why: "NVIDIA device plugin"},
	{Name: "nodepools", Deadline: 900, Why: "NodePools and EC2NodeClasses"},
	{Name: "autoscaler", Deadline: 600, Why: "hand-over from Cluster Autoscaler"},
	emptyBuilds,
	{Name: "nodegroups/pins", Deadline: 1800, Why: "system Deployments on system nodes"},
}

var (
	emptyBuilds   = Step{Name: "nodegroups/build", Deadline: 900, Why: "build node groups to zero"}
	restoreBuilds = Step{Name: "nodegroups/build", Deadline: 900, Why: "build node groups as they were"}
)

// enabling is enable for the plan: without a pool for builds, build groups are back before a pool that they had goes.
func (b *builder) enabling() []Step {
	if b.plan.Nodegroups.BuildEmpty {
		return enable
	}
	steps := slices.DeleteFunc(slices.Clone(enable), func(s Step) bool { return s.Name == emptyBuilds.Name })
	return slices.Insert(steps, slices.IndexFunc(steps, func(s Step) bool { return s.Name == "nodepools" }), restoreBuilds)
}

// askFirst is the second step of turning off: it only reads, and refuses what would be refused later, so that after a refusal
// nothing has changed (spec 6.1). It comes behind access, which lets it into the cluster, and before all else that changes something.
var askFirst = Step{Name: "nodegroups/fit", Deadline: 300, Guards: "nodepools", Why: "whether the pods of Karpenter's nodes fit elsewhere"}

// disable takes Karpenter out again (spec 6): room first, then the nodes, then what served them. The controller, its
// credentials and its queue go after the last NodeClaim and EC2NodeClass.
var disable = []Step{
	{Name: "autoscaler", Deadline: 600, Why: "Cluster Autoscaler as it was"},
	restoreBuilds,
	{Name: "nodegroups/room", Deadline: 1200, Guards: "nodepools", Why: "room on other nodes for the pods of Karpenter's"},
	{Name: "controller/serve", Deadline: 900, Guards: "nodepools", Why: "Karpenter's controller up while its nodes go"},
	{Name: "nodepools", Deadline: 5400, Why: "NodePools drained and deleted"},
	{Name: "controller/plugin", Deadline: 300, Why: "NVIDIA device plugin removed"},
	{Name: "controller/release", Deadline: 600, Why: "Karpenter's controller removed"},
	{Name: "queue", Deadline: 300, Why: "rule and interruption queue removed"},
	{Name: "infrastructure", Deadline: 600, Why: "access entry, credentials and roles removed"},
	{Name: "nodegroups/pins", Deadline: 1800, Why: "nodeSelectors as they were"},
}

// ChangeStep is the step before all others of a pass that has accepted a change request. It is about parameters and not about
// the cluster, so no plan has it. It is Whole because its own writes count as requests of the rack.
var ChangeStep = Step{Name: "change", Function: "change", Deadline: 300, Whole: true, Why: "parameters of a change request written to Parameter Store"}

// CloseStep is the one step of a pass that forgets a rack, before its records end. No plan has it: whoever forgets a rack has no
// parameters left to make a plan of. The step works by the last plan that there was.
var CloseStep = Step{Name: "access/close", Function: "access", Part: "close", Deadline: 300, Why: "access entries and rights of Sawhorse's own functions removed"}

// abandon clears away what a cluster that is gone has left in AWS: instances first, which outlive the cluster.
var abandon = []Step{
	{Name: "nodepools", Deadline: 1800, Why: "instances that Karpenter launched ended"},
	{Name: "queue", Deadline: 300, Why: "rule and interruption queue removed"},
	{Name: "infrastructure", Deadline: 600, Why: "roles removed"},
}

// order is the steps that lead to the plan's goal. It is written here and nowhere else.
func (b *builder) order() []Step {
	if b.plan.Cluster.Gone {
		return slices.Clone(abandon)
	}
	steps := slices.Clone(prepare)
	vacant := slices.IndexFunc(steps, func(s Step) bool { return s.Name == "access/vacant" })
	switch {
	case b.plan.Goal == GoalKarpenter:
		steps[vacant].Guards = "infrastructure" // which is due whenever Karpenter is turned on, also in a cluster opened long ago
		steps = append(steps, b.around(b.enabling())...)
	case b.facts.Records.WasOn:
		steps[vacant] = askFirst // in its place: turning off is not held up by names that others have
		steps = append(steps, b.around(disable)...)
	}
	return steps
}

// steps are the order with the fingerprint of what each step applies.
func (b *builder) steps() []Step {
	steps := b.order()
	for i := range steps {
		s := &steps[i]
		s.Function, s.Part, _ = strings.Cut(s.Name, "/")
		s.Fingerprint = b.plan.fingerprint(*s)
	}
	return steps
}

// Due are the steps whose part of the plan is not what was last applied; where nothing is known to be applied, all of them.
// A step that guards another is due with that one: what it found before an earlier removal says nothing about this one.
func (p *Plan) Due(applied map[string]string) []Step {
	differs := map[string]bool{}
	for _, s := range p.Steps {
		differs[s.Name] = applied[s.Name] != s.Fingerprint
	}
	var due []Step
	for _, s := range p.Steps {
		if differs[cmp.Or(s.Guards, s.Name)] {
			due = append(due, s)
		}
	}
	return due
}

// buildMin matters only where build groups go back to it.
func (p *Plan) buildMin() *int {
	if p.Nodegroups.BuildEmpty {
		return nil
	}
	return p.Nodegroups.BuildMin
}

// release is the section without the device plugin, which is no part of Karpenter's release.
func (p *Plan) release() Controller {
	release := p.Controller
	release.DevicePlugin = false
	return release
}

// targets is the section without the groups that the step leaves out when it looks for others: a node group that comes or goes is
// no change of its own.
func (p *Plan) targets() Autoscaler {
	targets := p.Autoscaler
	targets.Managed = nil
	return targets
}

// fingerprint is a hash of the part of the plan that a step applies.
func (p *Plan) fingerprint(s Step) string {
	parts := map[string]any{
		"access":             []any{p.Access, p.Cluster},
		"access/vacant":      []any{p.Access, p.Cluster},
		"network":            []any{p.Network, p.Cluster.Name},
		"nodegroups/labels":  p.Nodegroups.System,
		"nodegroups/copy":    p.Nodegroups.Replaced,
		"nodegroups/retire":  p.Nodegroups.Replaced,
		"nodegroups/keep":    p.Nodegroups.Replaced,
		"nodegroups/build":   []any{p.Nodegroups.Build, p.Nodegroups.BuildEmpty, p.buildMin()},
		"nodegroups/pins":    p.Nodegroups.Pinned,
		"nodegroups/fit":     p.NodePools,
		"nodegroups/room":    p.NodePools,
		"infrastructure":     p.Infrastructure,
		"queue":              p.Queue,
		"controller/crds":    []any{p.Controller.CRDs, p.Controller.Version},
		"controller/release": p.release(),
		"controller/plugin":  p.Controller.DevicePlugin,
		"controller/serve":   p.NodePools,
		"nodepools":          p.NodePools,
		"autoscaler":         p.targets(),
	}
	text, err := json.Marshal(parts[s.Name])
	if err != nil {
		panic("plan: fingerprint of " + s.Name + ": " + err.Error()) // plain data always marshals
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
