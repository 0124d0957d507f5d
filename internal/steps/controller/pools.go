package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

const (
	// looking is how long a new leader has to look at all pools. Karpenter does so right after its election; the
	// EC2NodeClasses take some calls of AWS each.
	looking = 30 * time.Second
	// electing is how long the pods of a new controller may take to elect a leader. A Lease that the last leader has not
	// given up ends after 15 seconds.
	electing = 30 * time.Second
	// ending is how long a pod may still run after the end of its grace period. The pod of a lost node is never gone.
	ending = 30 * time.Second
	// leaderLease is the Lease by which Karpenter's pods elect their leader.
	leaderLease = "karpenter-leader-election"
	// hashVersion is on every EC2NodeClass: the version of the hash of the Karpenter that last looked at it.
	hashVersion = "karpenter.k8s.aws/ec2nodeclass-hash-version"
)

// readyPools returns the subjects of the rack's NodePools and EC2NodeClasses that are Ready.
func (r *run) readyPools(ctx context.Context) ([]string, error) {
	set, err := r.client.PoolSet(ctx, r.plan.Rack)
	if err != nil {
		return nil, err
	}
	var ready []string
	for _, object := range slices.Concat(set.Classes, set.Pools) {
		if is, _ := k8s.Ready(&object); is && object.GetDeletionTimestamp() == nil {
			ready = append(ready, k8s.Subject(&object))
		}
	}
	return ready, nil
}

// poolsWork looks whether the controller of a version, whose pods are Ready, finds every pool Ready that was before.
//
// A pool that stays Ready shows no trace of a new controller. So the pool must be Ready some time after a new pod has
// become the leader: after the last old pod has ended, and the leader has renewed its Lease since. If the version has
// another hash for EC2NodeClasses than the one before, each of them must have it too.
func (r *run) poolsWork(ctx context.Context, at *attempt, release karpenter.Release) (finding, error) {
	leads, found, err := r.leads(ctx, at)
	if err != nil || found != (finding{}) {
		return found, err
	}
	set, err := r.client.PoolSet(ctx, r.plan.Rack)
	if err != nil {
		return finding{}, err
	}
	retiring := map[string]bool{} // pools that are being removed, with their classes
	for _, pool := range set.Pools {
		retiring[pool.GetName()] = pool.GetLabels()[ownership.Retiring] != ""
	}
	var missing, unseen []string
	for _, object := range slices.Concat(set.Classes, set.Pools) {
		subject := k8s.Subject(&object)
		if !slices.Contains(at.Ready, subject) || object.GetDeletionTimestamp() != nil || retiring[object.GetName()] {
			continue
		}
		if ready, note := k8s.Ready(&object); !ready {
			missing = append(missing, subject+" was Ready before: "+note)
		} else if seen := object.GetAnnotations()[hashVersion]; seen != "" && seen != release.EC2NodeClass.Version {
			unseen = append(unseen, subject+": Karpenter "+release.Version+" has not looked at it yet")
		}
	}
	switch {
	case len(missing) > 0:
		return finding{trouble: strings.Join(missing, "; ")}, nil
	case r.Now().Before(leads.Add(looking)):
		return finding{wait: "Karpenter " + release.Version + " looks at the pools"}, nil
	}
	return finding{trouble: strings.Join(unseen, "; ")}, nil
}

// leads returns since when a new pod of the controller leads, or what is missing until one does.
func (r *run) leads(ctx context.Context, at *attempt) (time.Time, finding, error) {
	deployment, err := r.client.Get(ctx, k8s.Deployment, ownership.Namespace, ownership.ReleaseController)
	if err != nil || deployment == nil {
		return time.Time{}, finding{trouble: "Deployment/kube-system/karpenter: it is gone"}, err
	}
	typed, err := k8s.As[appsv1.Deployment](deployment)
	if err != nil {
		return time.Time{}, finding{}, err
	}
	if typed.Spec.Paused { // no pod is replaced until somebody resumes it
		return time.Time{}, finding{trouble: k8s.Subject(deployment) + ": its rollout is paused"}, nil
	}
	pods, err := r.client.PodsOf(ctx, deployment)
	if err != nil {
		return time.Time{}, finding{}, err
	}
	for _, pod := range pods {
		if gone := pod.DeletionTimestamp; gone != nil && r.Now().Before(gone.Add(ending)) {
			return time.Time{}, finding{wait: "Pod/" + pod.Namespace + "/" + pod.Name + ": ending"}, nil
		}
	}
	if at.Replaced.IsZero() {
		at.Replaced = r.Now().UTC()
		if err := r.save(ctx, at); err != nil {
			return time.Time{}, finding{}, err
		}
	}
	leader, err := r.client.LeaderOf(ctx, ownership.Namespace, leaderLease)
	if err != nil {
		return time.Time{}, finding{}, err
	}
	if !leader.Renewed.After(at.Replaced) {
		note := k8s.Subject(deployment) + ": none of its pods leads (Lease " + leaderLease + ")"
		if r.Now().Before(at.Replaced.Add(electing)) { // the change may have had its time before anybody looked at the pods
			return time.Time{}, finding{wait: note}, nil
		}
		return time.Time{}, finding{trouble: note}, nil
	}
	if leader.Acquired.After(at.Replaced) {
		return leader.Acquired, finding{}, nil
	}
	return at.Replaced, finding{}, nil
}
