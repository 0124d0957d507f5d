// Package access gives Sawhorse's functions access to an EKS cluster: the access mode, access entries, and rights
// inside the cluster.
package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
	"github.com/sawhorse-io/sawhorse/internal/steps/updates"
)

// Step gives the functions access to a cluster and takes it away.
type Step struct {
	EKS     EKS
	Connect k8s.Connector
	// Principals are the roles of the functions that call the API server, by function.
	Principals map[string]Principal
	Written    resource.Records
	Now        func() time.Time
}

// Principal is the role of a function.
type Principal struct {
	ARN string `json:"arn"`
	// ID is IAM's unique ID of the role. A role that was deleted and created again has another one.
	ID string `json:"id"`
}

// EKS lists the EKS calls of the step.
type EKS interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	UpdateClusterConfig(context.Context, *eks.UpdateClusterConfigInput, ...func(*eks.Options)) (*eks.UpdateClusterConfigOutput, error)
	updates.EKS
	DescribeAccessEntry(context.Context, *eks.DescribeAccessEntryInput, ...func(*eks.Options)) (*eks.DescribeAccessEntryOutput, error)
	CreateAccessEntry(context.Context, *eks.CreateAccessEntryInput, ...func(*eks.Options)) (*eks.CreateAccessEntryOutput, error)
	UpdateAccessEntry(context.Context, *eks.UpdateAccessEntryInput, ...func(*eks.Options)) (*eks.UpdateAccessEntryOutput, error)
	DeleteAccessEntry(context.Context, *eks.DeleteAccessEntryInput, ...func(*eks.Options)) (*eks.DeleteAccessEntryOutput, error)
	eks.ListAssociatedAccessPoliciesAPIClient
	AssociateAccessPolicy(context.Context, *eks.AssociateAccessPolicyInput, ...func(*eks.Options)) (*eks.AssociateAccessPolicyOutput, error)
}

// poll is how long to wait for EKS before the next call.
const poll = 3 * time.Second

// administrators are the functions that need all rights in the cluster. The function access grants the others their
// rights, and controller applies the roles of Karpenter's chart; Kubernetes allows both only to those who hold every right
// concerned.
var administrators = map[string]bool{"access": true, "controller": true}

// Run gives the functions the access that the plan describes. Its part "conflicts" checks whether Karpenter's names in
// the cluster are free. Its part "close" takes the access away.
func (a *Step) Run(ctx context.Context, p *plan.Plan, part string) (outcome.Progress, error) {
	w, err := resource.Open(ctx, a.Written, p.Rack, "access", a.Now)
	if err != nil {
		return outcome.Progress{}, err
	}
	switch part {
	case "conflicts":
		err = a.conflicts(ctx, p)
	case "close":
		err = a.close(ctx, p, w)
	default:
		err = a.open(ctx, p, w)
	}
	self := admin.Function{Name: "access", Principal: a.Principals["access"].ARN, EKS: a.EKS, Now: a.Now}
	return w.End(ctx, self.Refused(ctx, p.Cluster, unseenTag(p, err)))
}

// unseenTag turns a refusal by IAM into an error that is retried for some seconds. The function's rights require a tag
// on the cluster, which its owner may have set moments ago. The function validate has seen the tag, but AWS does not
// document how soon IAM does.
func unseenTag(p *plan.Plan, err error) error {
	if outcome.Code(err) != "AccessDeniedException" {
		return err
	}
	return &outcome.NotYet{Reason: outcome.Unready, Note: fmt.Sprintf("%v; "+
		"the function may change only a cluster that carries the tag %s=%s: "+
		"look whether cluster %s has it, and whether a service control policy refuses",
		err, ownership.TagRack, p.Rack, p.Cluster.Name)}
}

func (a *Step) open(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	ready, err := a.mode(ctx, p, w)
	if err != nil {
		return err
	}
	if !ready {
		return outcome.Wait(poll, "EKS changes the access mode of cluster %s to %s", p.Cluster.Name, p.Access.Mode)
	}
	if err := a.entries(ctx, p, w); err != nil {
		return err
	}
	client, err := a.Connect(ctx, p.Cluster)
	if err != nil {
		return err
	}
	err = a.grant(ctx, client, p, w)
	if outcome.IsNotYet(err, outcome.Unready) {
		return outcome.Wait(poll, "the access entry of function access does not work yet")
	}
	return err
}

// mode reports whether the cluster has the wanted access mode, and a change to it has ended. If it has another mode, it
// starts the change.
func (a *Step) mode(ctx context.Context, p *plan.Plan, w *resource.Writer) (bool, error) {
	reached, status, err := a.reached(ctx, p)
	last := updates.Last{EKS: a.EKS, Writer: w, Cluster: p.Cluster.Name}
	if err != nil {
		return false, err
	}
	if reached {
		if status == types.ClusterStatusUpdating && last.Begun() {
			last.Continues()
			return false, nil
		}
		last.Made() // an update of others, such as a new version of Kubernetes, may take an hour
		return true, nil
	}
	if status == types.ClusterStatusUpdating { // from our last call, or somebody else's
		last.Continues()
		return false, nil
	}
	if words, err := last.Failed(ctx); err != nil {
		return false, fmt.Errorf("cluster %s: %w", p.Cluster.Name, err)
	} else if words != "" {
		return false, fmt.Errorf("cluster %s: change access mode to %s: %s", p.Cluster.Name, p.Access.Mode, words)
	}
	out, err := a.EKS.UpdateClusterConfig(ctx, &eks.UpdateClusterConfigInput{
		Name:         &p.Cluster.Name,
		AccessConfig: &types.UpdateAccessConfigRequest{AuthenticationMode: types.AuthenticationMode(p.Access.Mode)},
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return false, nil // somebody started an update since
	}
	if errors.As(err, new(*types.InvalidParameterException)) {
		// EKS also refuses a mode that the cluster already has: another update has ended meanwhile, or the answer to
		// our first try was lost.
		if reached, _, failed := a.reached(ctx, p); failed != nil || reached {
			return reached, failed
		}
	}
	if err != nil {
		return false, fmt.Errorf("cluster %s: change access mode to %s: %w", p.Cluster.Name, p.Access.Mode, err)
	}
	last.Began(out.Update)
	w.Changed("changed to "+p.Access.Mode, "access mode of cluster %s", p.Cluster.Name)
	return false, nil
}

// reached reports whether the cluster has the wanted access mode, or API, which is beyond it.
func (a *Step) reached(ctx context.Context, p *plan.Plan) (bool, types.ClusterStatus, error) {
	out, err := a.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &p.Cluster.Name})
	if err != nil {
		return false, "", fmt.Errorf("cluster %s: describe: %w", p.Cluster.Name, err)
	}
	live := modeOf(out.Cluster)
	return string(live) == p.Access.Mode || live == types.AuthenticationModeApi, out.Cluster.Status, nil
}

// modeOf returns a cluster's access mode. Clusters older than access modes have an empty one, which means CONFIG_MAP.
func modeOf(cluster *types.Cluster) types.AuthenticationMode {
	if c := cluster.AccessConfig; c != nil && c.AuthenticationMode != "" {
		return c.AuthenticationMode
	}
	return types.AuthenticationModeConfigMap
}

// conflicts rejects a cluster that has a Karpenter, or parts of one, that Sawhorse did not make: two Karpenters on one
// cluster terminate each other's nodes.
func (a *Step) conflicts(ctx context.Context, p *plan.Plan) error {
	client, err := a.Connect(ctx, p.Cluster)
	if err != nil {
		return err
	}
	found, err := client.UnmanagedKarpenter(ctx, p.Rack, p.Controller.CRDs.Definitions)
	if err != nil {
		return err
	}
	contested, err := client.Contested(ctx, p.Rack, p.NodePools.Manifests())
	if err != nil {
		return err
	}
	if found = append(found, contested...); len(found) == 0 {
		return others(ctx, client, p)
	}
	slices.Sort(found)
	return outcome.Reject("karpenter_auth_mode", "cluster %s has a Karpenter, or parts of one, that Sawhorse did not make: %s; "+
		"two Karpenters on one cluster end each other's nodes; uninstall its controller and hand its CRDs over, or label what is to be "+
		"handed over %s=%s, as docs/migrate-karpenter.md describes, which keeps its nodes, or use another cluster",
		p.Cluster.Name, strings.Join(slices.Compact(found), ", "), ownership.TagRack, p.Rack)
}

// others checks, before Karpenter is installed, what later steps would reject: a device plugin, a PriorityClass or a
// Cluster Autoscaler that does not fit. After the installation validate checks that where it changes, and only the steps themselves check
// what is in force, so that a pass still repairs what comes before them.
func others(ctx context.Context, client *k8s.Client, p *plan.Plan) error {
	if p.Goal != plan.GoalKarpenter {
		return nil
	}
	all, err := client.List(ctx, k8s.Deployment, "", "")
	if err != nil || k8s.Find(all, ownership.Namespace+"/"+ownership.ReleaseController) != nil {
		return err
	}
	if p.Controller.DevicePlugin != nil {
		if err := refusals.UnmanagedDevicePlugin(ctx, client, p.Rack); err != nil {
			return err
		}
	}
	if err := refusals.PriorityClass(ctx, client, p.Controller.Release.Values); err != nil {
		return err
	}
	_, err = refusals.Autoscaler(all, p.Rack, p.Autoscaler.Deployment)
	return err
}

// grant makes the namespace of the proof's pods, and gives the functions that are not administrators their rights in the
// cluster.
func (a *Step) grant(ctx context.Context, client *k8s.Client, p *plan.Plan, w *resource.Writer) error {
	if len(p.Access.Namespace) > 0 { // the plan of a rejected rack may be one of an earlier release, which made no namespace
		if err := apply(ctx, client, p, p.Access.Namespace, w); err != nil {
			return err
		}
	}
	for _, function := range slices.Sorted(maps.Keys(a.Principals)) {
		rights := p.Access.Rights[function]
		if len(rights) == 0 { // an administrator
			continue
		}
		objects, err := k8s.Grants(p.Rack, function, rights)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := apply(ctx, client, p, object, w); err != nil {
				return err
			}
		}
	}
	return nil
}

func apply(ctx context.Context, client *k8s.Client, p *plan.Plan, object plan.Object, w *resource.Writer) error {
	applied, err := client.Apply(ctx, p.Rack, object)
	switch {
	case err != nil:
		return err
	case applied.Action == k8s.Terminating:
		return outcome.Wait(poll, "%s: an earlier one of this name is being deleted", applied.Subject)
	case applied.Changed():
		w.Changed(string(applied.Action), "%s", applied.Subject)
	}
	return nil
}

// groups returns the Kubernetes groups of a function's access entry.
func groups(function string) []string {
	if administrators[function] {
		return []string{}
	}
	return []string{ownership.Group(function)}
}
