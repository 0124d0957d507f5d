package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// prepare has the steps for karpenter_auth_mode. The checks that need the API server come second, before anything else
// is changed. They are repeated when Karpenter is turned on.
var prepare = []Step{
	{Name: "access", Deadline: 900, Why: "cluster access mode, access entries and the rights of Sawhorse's own functions"},
	{Name: "access/vacant", Deadline: 300, Why: "names in the cluster that others hold"},
	{Name: "network", Deadline: 300, Why: "discovery tags on subnets and security groups"},
	{Name: "nodegroups/labels", Deadline: 900, Why: "label of the system node groups"},
	{Name: "controller/crds", Deadline: 300, Why: "Karpenter's CRDs"},
}

// enable has the steps for karpenter_enabled=true. Existing capacity is only reduced after nodepools, which waits until
// Karpenter's pools are Ready.
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

// enabling returns the steps for the plan. If there is no build pool, build groups are restored before their pool is
// removed.
func (b *builder) enabling() []Step {
	if b.plan.Nodegroups.BuildEmpty {
		return enable
	}
	steps := slices.DeleteFunc(slices.Clone(enable), func(s Step) bool { return s.Name == emptyBuilds.Name })
	return slices.Insert(steps, slices.IndexFunc(steps, func(s Step) bool { return s.Name == "nodepools" }), restoreBuilds)
}

// askFirst is the second step of turning Karpenter off. It only reads, and refuses whatever a later step would refuse,
// so that a refusal leaves everything unchanged. It comes after access, which grants it access to the cluster.
var askFirst = Step{Name: "nodegroups/fit", Deadline: 300, Guards: "nodepools", Why: "whether the pods of Karpenter's nodes fit elsewhere"}

// disable removes Karpenter: it restores other capacity first, then drains the nodes, then removes what served them.
// The controller, its credentials and its queue are removed after the last NodeClaim and EC2NodeClass.
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

// ChangeStep runs before all other steps of a pass that has accepted a change request. It writes parameters and does
// not touch the cluster, so it is not part of a plan. It is Whole because its own writes count as requests of the rack.
var ChangeStep = Step{Name: "change", Function: "change", Deadline: 300, Whole: true, Why: "parameters of a change request written to Parameter Store"}

// CloseStep is the only step of a pass that forgets a rack, before the rack's records are deleted. It is not part of a
// plan, because a forgotten rack has no parameters to make one from. It uses the last plan.
var CloseStep = Step{Name: "access/close", Function: "access", Part: "close", Deadline: 300, Why: "access entries and rights of Sawhorse's own functions removed"}

// abandon removes what a deleted cluster has left in AWS. Instances come first, because they outlive the cluster.
var abandon = []Step{
	{Name: "nodepools", Deadline: 1800, Why: "instances that Karpenter launched ended"},
	{Name: "queue", Deadline: 300, Why: "rule and interruption queue removed"},
	{Name: "infrastructure", Deadline: 600, Why: "roles removed"},
}

// order returns the steps that lead to the plan's goal. It is the only place that defines their order.
func (b *builder) order() []Step {
	if b.plan.Cluster.Gone {
		return slices.Clone(abandon)
	}
	steps := slices.Clone(prepare)
	vacant := slices.IndexFunc(steps, func(s Step) bool { return s.Name == "access/vacant" })
	switch {
	case b.plan.Goal == GoalKarpenter:
		steps[vacant].Guards = "infrastructure" // infrastructure is due whenever Karpenter is turned on, also if access was prepared long ago
		steps = append(steps, b.around(b.enabling())...)
	case b.facts.Records.WasOn:
		steps[vacant] = askFirst // instead of access/vacant, because name conflicts must not block turning Karpenter off
		steps = append(steps, b.around(disable)...)
	}
	return steps
}

// steps returns the steps in order, with their fingerprints.
func (b *builder) steps() []Step {
	steps := b.order()
	for i := range steps {
		s := &steps[i]
		s.Function, s.Part, _ = strings.Cut(s.Name, "/")
		s.Fingerprint = b.plan.fingerprint(*s)
	}
	return steps
}

// Due returns the steps whose part of the plan differs from what was last applied, or all steps if nothing was applied.
// A step that guards another is due with that one, because its result from an earlier removal is out of date.
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

// buildMin returns the size that build groups return to, or nil if they stay empty, where it has no effect.
func (p *Plan) buildMin() *int {
	if p.Nodegroups.BuildEmpty {
		return nil
	}
	return p.Nodegroups.BuildMin
}

// release returns the section without the device plugin, which is not part of Karpenter's release.
func (p *Plan) release() Controller {
	release := p.Controller
	release.DevicePlugin = false
	return release
}

// targets returns the section without Managed, which the step only uses for its search. A node group that is created or
// deleted does not make the step due.
func (p *Plan) targets() Autoscaler {
	targets := p.Autoscaler
	targets.Managed = nil
	return targets
}

// fingerprint returns a hash of the part of the plan that a step applies.
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
