package controller

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
)

// ofController selects the objects of the controller's chart, and its pods.
const ofController = "app.kubernetes.io/instance=" + ownership.ReleaseController

// kinds are those of the controller's chart.
var kinds = []k8s.Kind{
	k8s.Deployment, k8s.Service, k8s.ServiceAccount, k8s.ClusterRole, k8s.ClusterRoleBinding, k8s.Role, k8s.RoleBinding,
	k8s.PodDisruptionBudget, k8s.ServiceMonitor,
}

// change describes what an apply of a chart's objects does: from is the version that is installed, or empty.
type change struct{ release, from, to string }

// install applies the objects of a release, and deletes those that an earlier version or other values had. It takes them over
// from a Helm release.
func (r *run) install(ctx context.Context, release plan.Release) error {
	if err := refusals.PriorityClass(ctx, r.client, release.Values); err != nil {
		return err
	}
	objects, err := r.objects(ctx, release)
	if err != nil {
		return err
	}
	found, err := r.survey(ctx, objects)
	if err != nil {
		return err
	}
	takes, err := r.takesOver(ctx, release.Name, found.released)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, change{release.Name, found.version, release.Version}, objects); err != nil {
		return err
	}
	deleted, err := r.prune(ctx, objects)
	for _, subject := range deleted {
		r.progress.Changed("deleted", "%s", subject)
	}
	if err != nil || !takes {
		return err
	}
	return r.takenOver(ctx, release.Name)
}

// objects returns the objects of a release with as many replicas as the system nodes allow. A plan has none if an earlier version
// of Sawhorse has made it.
func (r *run) objects(ctx context.Context, release plan.Release) ([]plan.Object, error) {
	if len(release.Objects) == 0 {
		return nil, fmt.Errorf("release %s: there is no plan of format %d with its objects: another version of Sawhorse made the last one, "+
			"as while a deployment goes on, or Karpenter's chart refuses its values; the next pass makes a new one", release.Name, plan.Format)
	}
	nodes, err := r.client.SystemNodes(ctx)
	if err != nil {
		return nil, err
	}
	replicas := r.replicas(nodes)
	var all []plan.Object
	for _, object := range release.Objects {
		if object["kind"] == k8s.Deployment.Name {
			object = (&unstructured.Unstructured{Object: object}).DeepCopy().Object
			if err := unstructured.SetNestedField(object, int64(replicas), "spec", "replicas"); err != nil {
				return nil, fmt.Errorf("release %s: replicas: %w", release.Name, err)
			}
		}
		all = append(all, object)
	}
	return all, nil
}

// found is what there is of a chart's objects.
type found struct {
	// version is that of the Deployment, or empty.
	version string
	// released means that an object is one of a Helm release.
	released bool
}

// survey reads the objects of the controller before the first one is applied. It rejects the plan if one of them is not the rack's,
// and, before the controller is installed, if the cluster has another Karpenter.
func (r *run) survey(ctx context.Context, objects []plan.Object) (found, error) {
	var is found
	var foreign []string
	installed := false
	for _, object := range objects {
		live, err := r.client.GetLike(ctx, object)
		switch {
		case err != nil:
			return is, err
		case live == nil:
			continue
		case k8s.Owned(live, r.plan.Rack) != nil:
			foreign = append(foreign, k8s.Subject(live))
		}
		is.released = is.released || k8s.Released(live, ownership.ReleaseController)
		if live.GetKind() == k8s.Deployment.Name {
			is.version, installed = live.GetLabels()[labelVersion], true
		}
	}
	if !installed {
		others, err := r.client.UnmanagedKarpenter(ctx, r.plan.Rack, r.plan.Controller.CRDs.Definitions)
		if err != nil {
			return is, err
		}
		foreign = append(foreign, others...)
	}
	if len(foreign) > 0 {
		return is, r.reject(foreign)
	}
	return is, nil
}

func (r *run) reject(found []string) error {
	return outcome.Reject("karpenter_enabled", "The cluster already has a Karpenter that Sawhorse did not install: %s. "+
		"Uninstall its controller first and hand its CRDs over, or label what is to be handed over %s=%s, as docs/migrate-karpenter.md "+
		"describes, or leave karpenter_enabled at false.",
		strings.Join(found, ", "), ownership.TagRack, r.plan.Rack)
}

// apply applies a chart's objects one by one, and reports what it did.
func (r *run) apply(ctx context.Context, to change, objects []plan.Object) error {
	var done []k8s.Applied
	defer func() { r.report(to, done, len(objects)) }()
	for _, object := range objects {
		applied, err := r.client.Adopt(ctx, r.plan.Rack, to.release, object)
		if k8s.IsConflict(err) {
			return outcome.Wait(poll, "release %s: %v", to.release, err)
		}
		if err != nil {
			return fmt.Errorf("release %s: %w", to.release, err)
		}
		if applied.Action == k8s.Terminating {
			return outcome.Wait(poll, "%s: an earlier one of this name is being deleted", applied.Subject)
		}
		done = append(done, applied)
	}
	return nil
}

// report reports what an apply of all objects of a chart, or of the first of them, did: as one change where it was one.
func (r *run) report(to change, done []k8s.Applied, all int) {
	created := 0
	for _, applied := range done {
		if applied.Action == k8s.Created {
			created++
		}
		applied.ReportContested(&r.progress, "karpenter_enabled")
	}
	switch replaces := to.from != "" && to.from != to.to && len(done) == all; {
	case created == all:
		r.progress.Changed("installed", "release %s %s", to.release, to.to)
	case replaces && newer(to.from, to.to) == to.to:
		r.progress.Changed("upgraded from "+to.from, "release %s %s", to.release, to.to)
	case replaces:
		r.progress.Changed("downgraded from "+to.from, "release %s %s", to.release, to.to)
	default:
		for _, applied := range done {
			if applied.Changed() && !applied.Adopted {
				r.progress.Changed(applied.Action, "%s", applied.Subject)
			}
		}
	}
}

// prune deletes those of the rack's objects of the controller that are not wanted, and returns their subjects.
func (r *run) prune(ctx context.Context, wanted []plan.Object) (deleted []string, err error) {
	keep := map[string]bool{}
	for _, object := range wanted {
		keep[k8s.Subject(&unstructured.Unstructured{Object: object})] = true
	}
	for _, kind := range kinds {
		live, err := r.client.List(ctx, kind, "", ownership.TagRack+"="+r.plan.Rack+","+ofController)
		if err != nil {
			return deleted, err
		}
		for i := range live {
			subject := k8s.Subject(&live[i])
			if keep[subject] || live[i].GetDeletionTimestamp() != nil {
				continue
			}
			if err := r.client.Delete(ctx, kind, &live[i]); err != nil {
				return deleted, err
			}
			deleted = append(deleted, subject)
		}
	}
	return deleted, nil
}

// takeoverKey names the record that a Helm release is being taken over.
func takeoverKey(release string) string { return "controller/helm/" + release }

// takesOver reports whether a Helm release is to be taken over: one of its objects is still annotated, or a call that was stopped
// had found one.
func (r *run) takesOver(ctx context.Context, release string, released bool) (bool, error) {
	key, err := takeoverKey(release), error(nil)
	if released {
		err = r.Checkpoints.RecordOnce(ctx, r.plan.Rack, key, []byte("true"))
	} else {
		_, released, err = r.Checkpoints.Get(ctx, r.plan.Rack, key)
	}
	if err != nil {
		return false, unrecorded{err}
	}
	return released, nil
}

// takenOver deletes Helm's records of a release whose objects are all the rack's.
func (r *run) takenOver(ctx context.Context, release string) error {
	if _, err := r.client.ForgetRelease(ctx, release); err != nil {
		return err
	}
	r.progress.Changed("taken over", "Helm release %s", release)
	if err := r.Checkpoints.Forget(ctx, r.plan.Rack, takeoverKey(release)); err != nil {
		return unrecorded{err}
	}
	return nil
}

// unrecorded is an error of the rack's own records.
type unrecorded struct{ error }

func (u unrecorded) Unwrap() error { return u.error }
