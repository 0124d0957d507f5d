package plan

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
)

// Step is one unit of a pass: a function is called until the step is done.
type Step struct {
	// Name is unique in a plan. It is the function's name, followed by the part if the function has several:
	// "nodegroups/placement".
	Name string `json:"name"`
	// Function is the directory under functions/ that implements the step.
	Function string `json:"function"`
	// Part is the text after the slash in Name.
	Part string `json:"part,omitempty"`
	// Deadline is the longest time in seconds that the step may take, including waits.
	Deadline int `json:"deadline"`
	// PrecheckFor names the later step that this one makes safe. This step is due with that one (Due).
	PrecheckFor string `json:"precheckFor,omitempty"`
	// Uninterruptible keeps a write to the rack from ending the step early.
	Uninterruptible bool `json:"uninterruptible,omitempty"`
	// Why says what the step does, for people.
	Why string `json:"why"`
	// Fingerprint is a hash of the section of the plan that the step applies. It is recorded when the step is done.
	// Plan.SetFingerprints sets it. ChangeStep has none, because it is not part of a plan.
	Fingerprint string `json:"fingerprint"`
}

// ChangeStep runs before all other steps of a pass that has accepted a change. It writes parameters and does not touch the
// cluster, so it is not part of a plan. It is uninterruptible because its own writes count as requests of the rack.
// ChangeAgainStep takes its place where a write has failed: it runs after all other steps, waits between its attempts, and
// ends early for a write to the rack.
var (
	ChangeStep = Step{
		Name: "change", Function: "change", Deadline: 300, Uninterruptible: true,
		Why: "parameters of a change written to Parameter Store",
	}
	ChangeAgainStep = Step{
		Name: "change", Function: "change", Deadline: 2400,
		Why: "parameters of a change written to Parameter Store, after a write that failed",
	}
)

// MigrateStep is the name of the step that empties node groups. A pass takes one step of it, and waits for no pod.
const MigrateStep = "nodegroups/migrate"

// FitStep is the name of the step that judges whether Karpenter can be turned off. What comes before it changes nothing of Karpenter.
const FitStep = "nodegroups/fit"

// CloseStep is the only step of a pass that forgets a rack, before the rack's records are deleted. It is not part of a
// plan, because a forgotten rack has no parameters to make one from. It uses the last plan.
var CloseStep = Step{
	Name: "access/close", Function: "access", Part: "close", Deadline: 300,
	Why: "access entries and rights of Sawhorse's own functions removed",
}

// row defines a step: the section of the plan that it applies, and what it does. A step is due if its section has
// changed.
type row struct {
	name    string
	section func(*Plan) any
	// on is what the step does on the way to Karpenter, off on the way back, and gone after the cluster was deleted.
	on, off, gone work
}

// work is what a step does in one direction.
type work struct {
	// deadline is in seconds, including waits.
	deadline int
	why      string
	// precheckFor names the later step that this one makes safe, if that step is in the order.
	precheckFor string
}

// table has all steps of plans.
var table = []row{
	{name: "access", section: accessSection,
		on: work{900, "cluster access mode, access entries and the rights of Sawhorse's own functions", ""}},
	{name: "access/conflicts", section: accessSection,
		on: work{300, "names in the cluster that others hold", "infrastructure"}},
	{name: "network", section: networkSection,
		on: work{300, "discovery tags on subnets and security groups", ""}},
	{name: "nodegroups/labels", section: func(p *Plan) any { return optional("system", p.Nodegroups.System) },
		on: work{900, "label of the system node groups", ""}},
	{name: "nodegroups/copy", section: replacedSection,
		on: work{2400, "on-demand copies of SPOT system node groups", "nodegroups/retire"}},
	{name: "nodegroups/retire", section: replacedSection,
		on: work{5400, "SPOT system node groups drained and deleted", ""}},
	{name: "nodegroups/keep", section: replacedSection,
		off: work{300, "SPOT system node groups that have not been replaced yet stay", "nodepools"}},
	{name: "nodegroups/build", section: buildSection,
		on:  work{900, "build node groups to zero", ""},
		off: work{900, "build node groups as they were", ""}},
	{name: "nodegroups/placement", section: func(p *Plan) any { return optional("pinned", p.Nodegroups.Pinned) },
		on:  work{1800, "system Deployments on system nodes", ""},
		off: work{1800, "nodeSelectors as they were", ""}},
	{name: MigrateStep, section: migrationSection,
		on:  work{300, "nodes of node groups emptied, one at a time", ""},
		off: work{900, "emptied node groups as they were", ""}},
	{name: FitStep, section: nodePoolsSection,
		off: work{300, "whether the pods of Karpenter's nodes fit elsewhere", "nodepools"}},
	{name: "nodegroups/capacity", section: nodePoolsSection,
		off: work{1200, "capacity on other nodes for the pods on Karpenter's nodes", "nodepools"}},
	{name: "infrastructure", section: func(p *Plan) any { return p.Infrastructure },
		on:   work{600, "roles, credentials of the controller, access entry of the nodes", ""},
		off:  work{600, "access entry, credentials and roles removed", ""},
		gone: work{600, "roles removed", ""}},
	{name: "queue", section: func(p *Plan) any { return p.Queue },
		on:   work{300, "interruption queue and its rule", ""},
		off:  work{300, "rule and interruption queue removed", ""},
		gone: work{300, "rule and interruption queue removed", ""}},
	{name: "controller/crds", section: func(p *Plan) any { return p.Controller.CRDs },
		on: work{300, "Karpenter's CRDs", ""}},
	{name: "controller/release", section: func(p *Plan) any { return p.Controller.Release },
		on:  work{900, "Karpenter's controller", ""},
		off: work{600, "Karpenter's controller removed", ""}},
	{name: "controller/plugin", section: pluginSection,
		on:  work{300, "NVIDIA device plugin", ""},
		off: work{300, "NVIDIA device plugin removed", ""}},
	{name: "controller/serve", section: nodePoolsSection,
		off: work{900, "Karpenter's controller running while its nodes are removed", "nodepools"}},
	{name: FreezeStep, section: freezeSection,
		on: work{300, "freeze of the NodePools that exist", ""}},
	{name: "nodepools", section: nodePoolsSection,
		on:   work{900, "NodePools and EC2NodeClasses", ""},
		off:  work{5400, "NodePools drained and deleted", ""},
		gone: work{1800, "instances that Karpenter launched ended", ""}},
	{name: "proof", section: func(p *Plan) any { return p.Proof },
		on:  work{1080, "a first node of each pool that takes over", "autoscaler"},
		off: work{300, "pods that asked for first nodes removed", "nodepools"}},
	{name: "autoscaler", section: autoscalerSection,
		on:  work{600, "hand-over from Cluster Autoscaler", ""},
		off: work{600, "Cluster Autoscaler as it was", ""}},
}

// direction selects the work of a step.
type direction int

const (
	on direction = iota
	off
	gone
)

// entry is a step in an order.
type entry struct {
	name      string
	direction direction
	// when reports whether the step is part of the plan. Nil means always.
	when func(*builder) bool
}

// prepare is the order for karpenter_auth_mode. A freeze comes first, but for the access that it needs, so that it does not depend
// on what is wrong elsewhere, and reaches the NodePools before a version of Karpenter that may find that nodes differ from what it would
// launch. The checks that need the API server come next, before anything else is
// changed. They are repeated when Karpenter is turned on. When it is turned off, name conflicts must not block
// that; the check of the capacity runs instead, so that a refusal leaves everything unchanged. Pods that an interrupted
// proof has left would count in it.
var prepare = []entry{
	{"access", on, nil},
	{FreezeStep, on, (*builder).freezes},
	{"access/conflicts", on, (*builder).staying},
	{"proof", off, (*builder).turningOff},
	{FitStep, off, (*builder).turningOff},
	{"network", on, (*builder).staying},
	{"nodegroups/labels", on, (*builder).prepares}, // Karpenter's controller runs on these nodes, also while it is turned off
	{"controller/crds", on, func(b *builder) bool { return b.plan.Goal != GoalKarpenter && b.staying() }},
}

// enable is the order for karpenter_enabled=true, after prepare. Existing capacity is only reduced after nodepools,
// which waits until Karpenter's pools are Ready, and after proof, which waits for their first nodes. If there is no build
// pool, build groups are restored before their pool
// is removed. A SPOT group's copy is created before any step relies on system nodes, and the group is removed last.
//
// A controller finds what it needs: its rights, its queue and its CRDs come before it, and its pools after it. An older
// version of Karpenter has the reverse order, so that the pools lose what it does not know before it comes, and the
// newer version keeps its rights until it is gone. The CRDs do not go back.
var enable = []entry{
	{"nodegroups/copy", on, (*builder).replacing},
	{"infrastructure", on, (*builder).raises},
	{"queue", on, (*builder).raises},
	{"controller/crds", on, nil},
	{"controller/release", on, (*builder).raises},
	{"controller/plugin", on, nil},
	{"nodegroups/build", off, func(b *builder) bool { return !b.plan.Nodegroups.BuildEmpty }},
	{"nodepools", on, nil},
	{"controller/release", on, (*builder).lowers},
	{"queue", on, (*builder).lowers},
	{"infrastructure", on, (*builder).lowers},
	{"proof", on, nil},
	{"autoscaler", on, nil},
	{"nodegroups/build", on, func(b *builder) bool { return b.plan.Nodegroups.BuildEmpty }},
	{"nodegroups/placement", on, nil},
	{"nodegroups/retire", on, (*builder).replacing},
	{MigrateStep, on, (*builder).migrates},
}

// disable removes Karpenter, after prepare: it restores other capacity first, then drains the nodes, then removes what
// served them. Cluster Autoscaler comes back once there is room: if the nodes do not come, Karpenter is still the only
// autoscaler. The controller, its credentials and its queue are removed after the last NodeClaim and EC2NodeClass. A
// SPOT group that was being drained gets its nodes back before their capacity is needed; its copy stays.
var disable = []entry{
	{"nodegroups/keep", off, (*builder).replacing},
	{"nodegroups/build", off, nil},
	{MigrateStep, off, (*builder).migrates},
	{"nodegroups/capacity", off, nil},
	{"autoscaler", off, nil},
	{"controller/serve", off, nil},
	{"nodepools", off, nil},
	{"controller/plugin", off, nil},
	{"controller/release", off, nil},
	{"queue", off, nil},
	{"infrastructure", off, nil},
	{"nodegroups/placement", off, nil},
	// What stays comes last: a tag that AWS refuses, or a CRD whose label was lost, must not hold up what ends nodes.
	{"network", on, (*builder).prepares},
	{"controller/crds", on, (*builder).prepares},
}

// abandon removes what a deleted cluster has left in AWS. Instances come first, because they outlive the cluster.
var abandon = []entry{
	{"nodepools", gone, nil},
	{"queue", gone, nil},
	{"infrastructure", gone, nil},
}

// freezes reports whether the plan has the step of the freeze: if there is one, and from then on, to take it off. It is there until
// Karpenter is off, since turning it off may be refused.
func (b *builder) freezes() bool {
	may := b.plan.Goal == GoalKarpenter || b.turningOff()
	return may && (b.plan.NodePools.Frozen || b.facts.Records.Applied[FreezeStep] != "")
}

// migrates reports whether the plan has the step of the migration: if there is one, and until Karpenter is off, to stop it and
// to bring the sizes back.
func (b *builder) migrates() bool {
	return len(b.plan.Nodegroups.Migration.Groups) > 0 || b.facts.Records.HadMigration
}

// prepares reports whether the plan prepares the cluster: also when Karpenter is turned off, since what is prepared stays. It does not if
// turning on was refused before anything was: the cluster may have another Karpenter, whose CRDs and subnets are its own.
func (b *builder) prepares() bool {
	_, free := b.facts.Records.Applied["access/conflicts"]
	return free || b.staying() || b.facts.Offline // where nobody knows what is applied
}

func (b *builder) turningOff() bool { return b.plan.Goal != GoalKarpenter && b.facts.Records.WasOn }

func (b *builder) staying() bool { return !b.turningOff() }

func (b *builder) raises() bool { return !b.lowers() }

func (b *builder) replacing() bool { return len(b.plan.Nodegroups.Replaced) > 0 }

// order returns the order of the steps that lead to the plan's goal.
func (b *builder) order() []entry {
	switch {
	case b.plan.Cluster.Gone:
		return abandon
	case b.plan.Goal == GoalKarpenter:
		return slices.Concat(prepare, enable)
	case b.turningOff():
		return slices.Concat(prepare, disable)
	default:
		return prepare
	}
}

// steps returns the steps in order.
func (b *builder) steps() []Step {
	order := b.order()
	steps := make([]Step, 0, len(order))
	for _, e := range order {
		if e.when == nil || e.when(b) {
			steps = append(steps, e.step())
		}
	}
	for i, s := range steps {
		if !slices.ContainsFunc(steps, func(other Step) bool { return other.Name == s.PrecheckFor }) {
			steps[i].PrecheckFor = "" // for example access/conflicts, before Karpenter is turned on
		}
	}
	return steps
}

// step returns the entry as a step of a plan.
func (e entry) step() Step {
	r, ok := rowOf(e.name)
	if !ok {
		panic("plan: an order has the step " + e.name + ", and the table does not")
	}
	w := []work{r.on, r.off, r.gone}[e.direction]
	s := Step{Name: e.name, Deadline: w.deadline, PrecheckFor: w.precheckFor, Why: w.why}
	s.Function, s.Part, _ = strings.Cut(e.name, "/")
	return s
}

func rowOf(name string) (row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return r.name == name })
	if i < 0 {
		return row{}, false
	}
	return table[i], true
}

// SetFingerprints sets the fingerprint of each step. A plan needs them if it is compared with what was applied, or stored.
// They are a fifth of the time of a validation, so Build leaves them out.
func (p *Plan) SetFingerprints() {
	for i := range p.Steps {
		p.setFingerprint(i)
	}
}

func (p *Plan) setFingerprint(step int) {
	if r, ok := rowOf(p.Steps[step].Name); ok {
		p.Steps[step].Fingerprint = fingerprint(r.section(p))
	}
}

// HandsOver reports whether a step, when Karpenter is on, may take capacity or pods from what had them before.
func (s Step) HandsOver() bool {
	return slices.Contains([]string{"nodegroups/copy", "proof", "autoscaler", "nodegroups/build", "nodegroups/placement",
		"nodegroups/retire", MigrateStep}, s.Name)
}

func fingerprint(section any) string {
	sum := canonical.Hash(section)
	return hex.EncodeToString(sum[:8])
}

// Due returns the steps whose section of the plan differs from what was last applied, or all steps if nothing was
// applied. A precheck is due with the step that it is for, because its result from an earlier removal is out of date. The proof of
// the pools comes before build groups go to zero, too: one may be new long after Cluster Autoscaler's hand-over.
func (p *Plan) Due(applied map[string]string) []Step {
	differs := map[string]bool{}
	for _, s := range p.Steps {
		differs[s.Name] = applied[s.Name] != s.Fingerprint
	}
	empties := p.Goal == GoalKarpenter && p.Nodegroups.BuildEmpty && differs["nodegroups/build"]
	var due []Step
	for _, s := range p.Steps {
		if differs[cmp.Or(s.PrecheckFor, s.Name)] || s.Name == "proof" && empties {
			due = append(due, s)
		}
	}
	return due
}
