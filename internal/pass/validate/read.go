package validate

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// input is all that is known of a rack.
type input struct {
	request
	// silent means that the cluster's API server was asked in this iteration, and did not answer. Changes are judged by what runs too, and
	// asking again for each would take all of the function's time.
	silent *bool
	// outOfReach has the problem of each cluster that was asked whether it can be reached; none if it can.
	outOfReach map[string][]params.Problem

	// records, reported, inForce and outputs are what earlier passes left in the table: the rack's records, its last report,
	// its plan (nil if there is none) and its outputs. listed means that the schedule visits the rack, unknown that there is
	// nothing at all of it.
	records  plan.Records
	reported store.Reported
	inForce  *plan.Plan
	outputs  map[string]string
	listed   bool
	unknown  bool
	// refusedOff means that what the table has turns Karpenter off, which a step has refused or no step has judged yet. The plan
	// before, with its records, is then in force.
	refusedOff bool
	// hold is the hold of the stack. wasHeld means that the last pass found the rack held.
	hold    store.Holding
	wasHeld bool
	// holdAdvice is the warning of a held rack.
	holdAdvice []params.Problem

	// tree is the rack's parameters, with its changes laid over it.
	tree    store.Tree
	changes changes
	// live is the status and the outputs that Parameter Store has. Only a full request reads them.
	live store.Live
	// status is the status of the last report, or nil. Only a full request reads it.
	status *store.Status

	// parsed is the parameters, facts what AWS and the cluster have.
	parsed params.Result
	facts  plan.Facts
	// objects is what the parameters name in S3, by URI.
	objects map[string]params.Object
	// found has the steps of the plan in force that an audit found due, with the reasons. A full request audits all steps
	// that count as applied; audited means that the auditor has them all.
	found   map[string]string
	audited bool
}

// request says what is read of a rack, and what for.
type request struct {
	rack       string
	generation int64
	// full asks for an audit of all steps and of what Parameter Store has. dry means that nothing is to be written.
	full, dry bool
	// force has the guards that requests override, with the number of the last request that does.
	force map[string]int64
	// served is the number of requests that are served, or 0 if no pass of the rack has ended yet. writes are the latest writes
	// that events reported.
	served int64
	writes []store.Written
	// proposed is the change of which a dry run is asked, or nil.
	proposed *store.Requested
}

// held reports whether the stack's hold holds the rack.
func (in input) held() bool { return in.hold.Of(in.rack) }

// isForgotten reports whether only records are left of the rack: it has neither parameters nor the parameter change, and
// Karpenter is off, so that it needs nothing in the cluster any more.
func (in input) isForgotten() bool {
	return len(in.tree.Values) == 0 && !in.records.WasOn && !in.changes.exists && !in.changes.Writing() && in.proposed == nil
}

// stored reads what Parameter Store and the table have of a rack, side by side. Only a pass of the rack changes its records,
// and what others write meanwhile belongs to the next iteration.
func (v *Validate) stored(ctx context.Context, of request) (in input, err error) {
	in.request, in.silent, in.outOfReach = of, new(bool), map[string][]params.Problem{}
	reads, reading := errgroup.WithContext(ctx)
	reads.Go(func() (err error) {
		in.tree, err = store.ReadTree(reading, v.Parameters, v.Paths.Params(of.rack))
		return err
	})
	reads.Go(func() (err error) {
		in.hold, err = store.ReadHold(reading, v.Parameters, v.Paths)
		return err
	})
	reads.Go(func() (err error) {
		in.records, err = v.Store.Records(reading, of.rack)
		return err
	})
	reads.Go(func() (err error) {
		in.changes, err = v.readChanges(reading, of.rack)
		return err
	})
	reads.Go(func() (err error) {
		in.listed, in.wasHeld, err = v.Store.Listed(reading, of.rack)
		return err
	})
	reads.Go(func() (err error) {
		in.reported, err = v.Store.Reported(reading, of.rack)
		if err == nil && of.full {
			in.status, err = in.reported.Status()
		}
		return err
	})
	reads.Go(func() (err error) {
		in.inForce, err = v.Store.Plan(reading, of.rack)
		return err
	})
	if of.full {
		reads.Go(func() (err error) {
			in.outputs, err = v.Store.Outputs(reading, of.rack)
			return err
		})
		reads.Go(func() (err error) {
			in.live, err = store.ReadLive(reading, v.Parameters, v.Paths, of.rack)
			return err
		})
	}
	err = reads.Wait()
	if in.inForce != nil && in.inForce.Params == nil && in.inForce.From == in.records.From() { // an earlier release made it
		in.inForce.Params, in.inForce.Digests = in.records.Params, in.records.Objects
	}
	if in.inForce != nil {
		in.records.Issuer = in.inForce.Cluster.OIDCIssuer
	}
	if err == nil {
		in, err = v.refused(ctx, in)
	}
	in.unknown = of.proposed == nil && len(in.tree.Values) == 0 && !in.changes.exists && !in.listed &&
		in.records.Goal == "" && in.reported.Findings == ""
	return in, err
}

// refused brings back, in the input, the last plan with Karpenter and its records where turning Karpenter off was accepted and has not
// begun. The step that judges it notes that it begins before anything is changed.
func (v *Validate) refused(ctx context.Context, in input) (input, error) {
	p := in.inForce
	if !in.records.WasOn {
		return in, nil
	}
	if p != nil && p.Goal == plan.GoalKarpenter && p.Params != nil && in.records.Goal == plan.GoalAccess {
		in.refusedOff = true // the pass that accepted it was stopped before it saved the plan
		in.records.Goal, in.records.Params, in.records.Objects = p.Goal, p.Params, p.Digests
		return in, nil
	}
	last := p.Refused(in.records.Applied)
	if last == nil {
		return in, nil
	}
	if begun, err := v.Store.TurningOff(ctx, in.rack); err != nil || begun {
		return in, err
	}
	in.refusedOff, in.inForce = true, last
	in.records.Goal, in.records.Params, in.records.Objects, in.records.Applied = last.Goal, last.Params, last.Digests, last.Applied
	last.Applied = nil
	return in, nil
}

// observed adds what AWS and the cluster have for the rack's parameters, with its changes. Where nothing is left of a rack, it
// adds nothing.
func (v *Validate) observed(ctx context.Context, in input) (input, error) {
	if in.unknown || in.isForgotten() {
		return in, nil
	}
	in, err := v.overlaid(ctx, in)
	if err != nil {
		return in, err
	}
	if in, err = v.read(ctx, in); err != nil {
		return in, err
	}
	in.parsed.Config.Paused = in.paused()
	in.holdAdvice = in.hold.Advice(v.Paths, in.rack, in.records.WasOn && !in.parsed.Config.Enabled)
	reads, reading := errgroup.WithContext(ctx)
	var facts plan.Facts
	reads.Go(func() (err error) {
		facts, err = v.facts(reading, in)
		return err
	})
	found := v.audit(reading, in, isQueue)
	if err := reads.Wait(); err != nil {
		return in, err
	}
	in.facts, in.found, in.audited = facts, found, v.audits(in.inForce)
	mayRead := facts.Cluster == nil || facts.Authorized(in.rack)
	if mayRead && in.audited && in.full && !in.parsed.Config.Paused {
		maps.Copy(in.found, v.audit(ctx, in, func(s plan.Step) bool { return !isQueue(s) }))
	}
	v.inCluster(ctx, &in)
	return in, nil
}

// read parses the rack's parameters, with the objects that they name.
func (v *Validate) read(ctx context.Context, in input) (input, error) {
	var err error
	in.objects, err = v.objects(ctx, in.rack, in.tree.Values)
	in.parsed = params.Parse(params.Input{
		Rack: in.rack, Params: in.tree.Values, Secure: in.tree.Secure, Previous: in.records.Params, Removing: in.records.WasOn,
		Objects: in.objects,
	})
	return in, err
}

// facts returns the facts for the parameters that were read.
func (v *Validate) facts(ctx context.Context, in input) (plan.Facts, error) {
	facts, err := v.Observer.Facts(ctx, in.parsed.Config, in.records)
	if err != nil {
		return facts, err
	}
	facts.Writes, facts.Force, facts.Now = in.tree.Versions, in.forced(), v.Now()
	if in.records.Karpenter.RolledBack.Used(in.force[events.ForceVersion], in.generation) {
		facts.Force = slices.DeleteFunc(facts.Force, func(word string) bool { return word == events.ForceVersion })
	}
	facts.CNI = v.cni(ctx, in.parsed.Config, facts)
	facts.APIs = v.apis(ctx, in, facts)
	return facts, nil
}

// forced returns the guards that requests override, sorted; nil if there are none.
func (in input) forced() events.Force { return slices.Sorted(maps.Keys(in.force)) }

// judged is the input of the judgement.
func (in input) judged() validation.Input {
	pools := in.inForce.Pooled(in.records.Applied)
	judged := validation.Input{Parsed: in.parsed, Facts: in.facts, Compare: true, InForce: in.inForce, Applied: pools}
	judged.Earlier = in.earlier(in.inForce)
	if pools != in.inForce {
		judged.Earlier = append(judged.Earlier, in.earlier(pools)...)
	}
	return judged
}

// earlier returns a plan with the configuration that it was made from; none if its parameters are not known. A parameter whose
// object has changed since has its default in it.
func (in input) earlier(made *plan.Plan) []validation.Earlier {
	if made == nil || made.Params == nil {
		return nil
	}
	objects := map[string]params.Object{}
	for uri, object := range in.objects {
		if digest(object) != made.Digests[uri] {
			object = params.Object{Problem: "which has changed"}
		}
		objects[uri] = object
	}
	config := params.Parse(params.Input{Rack: in.rack, Params: made.Params, Objects: objects}).Config
	return []validation.Earlier{{Plan: *made, Config: config}}
}

// isQueue reports whether a step is the queue's. Every pass audits it, because users lose pods if interruptions are not
// received. It reads nothing of the cluster.
func isQueue(s plan.Step) bool { return s.Name == "queue" }

// audit compares what some steps of the plan in force have applied with what there is. It returns the steps that are due,
// with the reasons.
func (v *Validate) audit(ctx context.Context, in input, which func(plan.Step) bool) map[string]string {
	if in.inForce == nil {
		return map[string]string{}
	}
	p := *in.inForce
	p.Force = nil
	due := p.Due(in.records.Applied)
	steps := slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool {
		return !which(s) || isQueue(s) && !p.Queue.Present || slices.ContainsFunc(due, func(d plan.Step) bool { return d.Name == s.Name })
	})
	return v.Auditor.Due(ctx, &p, steps, in.records.Warnings)
}

// audits reports whether the auditor can run all steps of a plan. If it cannot, a full pass takes all steps. This
// happens in the function validate, if the request for a full pass came after the state machine had read the lease.
func (v *Validate) audits(p *plan.Plan) bool {
	return p == nil || !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return !v.Auditor.Audits(s) })
}

// cni returns where the VPC CNI gets its credentials; nil if that is not observed or cannot be read. Before Karpenter is on,
// no node depends on it, and the cluster may be another rack's.
func (v *Validate) cni(ctx context.Context, config params.Config, facts plan.Facts) *plan.CNI {
	if v.CNI == nil || !config.Enabled || !facts.Records.WasOn || facts.Cluster == nil || !facts.Authorized(config.Rack) {
		return nil
	}
	observed, err := v.CNI(ctx, facts.Cluster.Cluster)
	if err != nil {
		return nil
	}
	return &observed
}

// apis returns those APIs of the cluster that the values of Karpenter's chart ask for, or nil if they ask for none. An API server
// that does not answer changes nothing: what the plan in force was made with counts.
func (v *Validate) apis(ctx context.Context, in input, facts plan.Facts) []string {
	config := in.parsed.Config
	if !config.Enabled || !plan.Monitored(config.ControllerValues) || facts.Cluster == nil || !facts.Authorized(in.rack) {
		return nil
	}
	serves := false
	client, err := v.Dial(ctx, facts.Cluster.Cluster)
	if err == nil {
		serves, err = client.Serves(ctx, plan.MonitorAPI)
	}
	switch {
	case err != nil && (in.inForce == nil || !in.inForce.Controller.Release.Has("ServiceMonitor")):
		return nil
	case err != nil || serves:
		return []string{plan.MonitorAPI}
	}
	return []string{}
}

// inCluster adds to the facts what the judgement needs of what runs. An API server that does not answer is not an error: the plan then
// has no numbers, and what others have in the cluster is refused by the step.
func (v *Validate) inCluster(ctx context.Context, in *input) {
	if in.facts.Cluster == nil || !in.facts.Authorized(in.rack) {
		return
	}
	if in.isFirst() && in.parsed.Config.AuthMode {
		v.reach(ctx, in)
	}
	if !in.facts.Records.WasOn {
		return
	}
	needs, asked := in.judged().Needs(), in.asked()
	if needs == (validation.Needs{}) && len(asked) == 0 || *in.silent {
		return
	}
	client, err := v.Dial(ctx, in.facts.Cluster.Cluster)
	if err != nil {
		*in.silent = true
		return
	}
	if needs.Pools {
		inPools(ctx, client, in.rack, &in.facts, needs.PoolPods)
		*in.silent = in.facts.Pools == nil && in.facts.NodeClaims == nil
	}
	if needs.GroupPods && !*in.silent {
		inGroups(ctx, client, &in.facts)
	}
	for _, ask := range asked {
		if !*in.silent {
			in.ask(ctx, client, ask)
		}
	}
}

// inPools adds the status of the NodePools and the NodeClaims to the facts, and, if that is wanted, how many pods run in each
// pool.
func inPools(ctx context.Context, client *k8s.Client, rack string, facts *plan.Facts, pods bool) {
	var pools, claims []unstructured.Unstructured
	var poolsErr, claimsErr error
	var lists sync.WaitGroup
	lists.Go(func() { pools, poolsErr = client.List(ctx, k8s.NodePool, "", "") })
	claims, claimsErr = client.List(ctx, k8s.NodeClaim, "", "")
	if lists.Wait(); poolsErr == nil {
		facts.Pools = map[string]plan.PoolFacts{}
		for _, pool := range pools {
			nodes, _, _ := unstructured.NestedInt64(pool.Object, "status", "nodes")
			resources, _, _ := unstructured.NestedStringMap(pool.Object, "status", "resources")
			_, static, _ := unstructured.NestedFieldNoCopy(pool.Object, "spec", "replicas")
			facts.Pools[pool.GetName()] = plan.PoolFacts{
				Nodes: int(nodes), CPU: resources["cpu"], Memory: resources["memory"], Static: static, Others: k8s.Owned(&pool, rack) != nil,
			}
		}
	}
	if claimsErr == nil {
		facts.NodeClaims = make([]plan.Object, 0, len(claims))
		for _, claim := range claims {
			facts.NodeClaims = append(facts.NodeClaims, claim.Object)
		}
	}
	if pods && poolsErr == nil && claimsErr == nil {
		podsInPools(ctx, client, facts, claims)
	}
}

// podsInPools adds to the facts how many pods run in each pool. It adds nothing if they cannot be read.
func podsInPools(ctx context.Context, client *k8s.Client, facts *plan.Facts, claims []unstructured.Unstructured) {
	poolOf, pods := map[string]string{}, map[string]int{}
	for i := range claims {
		node, _, _ := unstructured.NestedString(claims[i].Object, "status", "nodeName")
		poolOf[node] = claims[i].GetLabels()[ownership.LabelPool]
	}
	err := countPods(ctx, client, poolOf, pods)
	for name, pool := range facts.Pools {
		if err == nil {
			pool.Pods = new(pods[name])
			facts.Pools[name] = pool
		}
	}
}

// inGroups adds to the facts how many pods run in each node group.
func inGroups(ctx context.Context, client *k8s.Client, facts *plan.Facts) {
	groupOf, pods := map[string]string{}, map[string]int{}
	nodes, err := client.List(ctx, k8s.Node, "", ownership.LabelNodeGroup)
	for _, node := range nodes {
		groupOf[node.GetName()] = node.GetLabels()[ownership.LabelNodeGroup]
		pods[groupOf[node.GetName()]] += 0
	}
	if err == nil && countPods(ctx, client, groupOf, pods) == nil {
		facts.GroupPods = pods
	}
}

// countPods counts the pods on the nodes of each pool or group, without those of DaemonSets and those that have ended.
func countPods(ctx context.Context, client *k8s.Client, of map[string]string, pods map[string]int) error {
	return client.Each(ctx, k8s.Pod, "", "", func(pod *unstructured.Unstructured) error {
		node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		if of[node] != "" && !k8s.Ended(corev1.PodPhase(phase)) && !k8s.Stays(pod) {
			pods[of[node]]++
		}
		return nil
	})
}
