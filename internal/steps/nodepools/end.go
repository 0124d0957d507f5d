package nodepools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// end does what Karpenter has not done: it terminates the instances of the rack's pools and, once their end is
// confirmed, removes their Nodes and NodeClaims. It returns an outcome.NotYet until nothing is left.
func (r *run) end(ctx context.Context, claims []unstructured.Unstructured) error {
	if err := r.endInstances(ctx, claims); err != nil {
		return err
	}
	nodes, err := r.nodesOf(ctx, r.set.Names())
	if err != nil {
		return err
	}
	var ids []string
	for i := range claims {
		ids = append(ids, instanceOf(&claims[i], "status"))
	}
	for i := range nodes {
		ids = append(ids, instanceOf(&nodes[i], "spec"))
	}
	ids = slices.DeleteFunc(union(ids, nil), func(id string) bool { return id == "" })
	running, err := r.running(ctx, ids)
	if err != nil {
		return err
	}
	if err := r.endNodes(ctx, nodes, running); err != nil {
		return err
	}
	return r.endClaims(ctx, claims, running)
}

// endInstances terminates running instances and waits until all have ended.
func (r *run) endInstances(ctx context.Context, claims []unstructured.Unstructured) error {
	list, err := r.instances(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	owner := map[string]string{}
	for i := range claims {
		owner[instanceOf(&claims[i], "status")] = claims[i].GetName()
	}
	var todo []instance
	var add forced
	var ids []string
	for _, i := range list {
		if name := owner[i.id]; name != "" {
			i.tags[tagClaim] = name
		}
		if ids = append(ids, i.id); !i.ending {
			todo, add.Instances = append(todo, i), append(add.Instances, i.String())
		}
	}
	if err := r.force(ctx, add); err != nil {
		return err
	}
	if err := r.terminate(ctx, todo); err != nil {
		return err
	}
	return outcome.Wait(poll, "%d instance(s) ending: %s", len(ids), some(ids))
}

// nodesOf returns the Node objects of pools without their large fields: there may be thousands.
func (r *run) nodesOf(ctx context.Context, pools []string) (nodes []unstructured.Unstructured, err error) {
	labels := ownership.LabelPool + " in (" + strings.Join(pools, ",") + ")"
	err = r.client.Each(ctx, k8s.Node, "", labels, func(node *unstructured.Unstructured) error {
		delete(node.Object, "status")
		node.SetManagedFields(nil)
		nodes = append(nodes, *node)
		return nil
	})
	return nodes, err
}

// endNodes deletes the nodes whose instance has ended, so that their pods start elsewhere. Without Karpenter, its
// finalizer would keep such a node for ever.
func (r *run) endNodes(ctx context.Context, nodes []unstructured.Unstructured, running map[string]bool) error {
	for i := range nodes {
		node := &nodes[i]
		if running[instanceOf(node, "spec")] {
			continue // it carries a label of Karpenter's, but Karpenter did not launch it
		}
		changed, err := r.client.Unfinalize(ctx, k8s.Node, node, ownership.TerminationFinalizer)
		if err != nil {
			return err
		}
		if changed {
			r.progress.Changed("finalizer removed", "%s", k8s.Subject(node))
		}
		if err := r.delete(ctx, k8s.Node, nodes[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// endClaims removes the NodeClaims whose instance has ended. If an instance still runs without Karpenter's tags, its
// NodeClaim is the last record of it. So that NodeClaim stays, and the operator decides: restore the tags, or force.
func (r *run) endClaims(ctx context.Context, claims []unstructured.Unstructured, running map[string]bool) error {
	var strays []string
	var done []unstructured.Unstructured
	for i := range claims {
		id := instanceOf(&claims[i], "status")
		if running[id] {
			strays = append(strays, fmt.Sprintf("%s (NodeClaim %s)", id, claims[i].GetName()))
		}
		if !running[id] || r.plan.Force.Has(events.ForceInstances) {
			done = append(done, claims[i])
		}
	}
	if r.plan.Force.Has(events.ForceInstances) {
		if err := r.force(ctx, forced{Remaining: strays}); err != nil {
			return err
		}
	}
	if err := r.removeFinalizers(ctx, k8s.NodeClaim, done, ownership.TerminationFinalizer); err != nil {
		return err
	}
	switch {
	case len(done) > 0:
		return outcome.Wait(poll, "%d NodeClaim(s) being let go: %s", len(done), remaining(done))
	case len(strays) > 0:
		return outcome.Wait(poll, "instances run that do not carry both of Karpenter's tags %s and %s=%s, so Sawhorse does not end them: %s; "+
			"look whose they are (a NodeClaim can name any instance): give the rack's own their tags back and Sawhorse ends them, "+
			"or send Rack Reconcile Requested with \"force\": [\"instances\"] to leave them running",
			ownership.LabelPool, ownership.TagEKSCluster, r.plan.Cluster.Name, strings.Join(strays, ", "))
	default:
		return nil
	}
}

// removeFinalizers removes Karpenter's finalizer from objects, and records which.
func (r *run) removeFinalizers(ctx context.Context, kind k8s.Kind, objects []unstructured.Unstructured, finalizer string) error {
	var add forced
	for i := range objects {
		if slices.Contains(objects[i].GetFinalizers(), finalizer) {
			add.Objects = append(add.Objects, k8s.Subject(&objects[i]))
		}
	}
	if len(add.Objects) == 0 {
		return nil
	}
	if err := r.force(ctx, add); err != nil {
		return err
	}
	for i := range objects {
		changed, err := r.client.Unfinalize(ctx, kind, &objects[i], finalizer)
		if err != nil {
			return err
		}
		if changed {
			r.progress.Changed("finalizer removed", "%s", k8s.Subject(&objects[i]))
		}
	}
	return nil
}

// instanceOf returns the EC2 instance of a NodeClaim (from its status) or a Node (from its spec); empty if it has none.
func instanceOf(object *unstructured.Unstructured, section string) string {
	provider, _, _ := unstructured.NestedString(object.Object, section, "providerID") // aws:///zone/i-…
	id := provider[strings.LastIndex(provider, "/")+1:]
	if !strings.HasPrefix(id, "i-") {
		return ""
	}
	return id
}
