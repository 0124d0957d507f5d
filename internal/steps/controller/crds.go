package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
)

// labelVersion is the label of the charts' objects that has the version of Karpenter. Sawhorse sets it on the CRDs too.
const labelVersion = "app.kubernetes.io/version"

// crds installs or upgrades the CRDs, and waits until the API server serves them.
func (r *run) crds(ctx context.Context) error {
	wanted := r.plan.Controller.CRDs
	found, err := r.client.UnmanagedCRDs(ctx, wanted.Definitions)
	if err != nil {
		return err
	}
	installed, released, err := r.installed(ctx)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return r.rejectCRDs(found, installed)
	}
	if err := r.noteCRDs(ctx, newer(installed, wanted.Version)); err != nil {
		return err
	}
	takes, err := r.takesOver(ctx, ownership.ReleaseCRD, released)
	if err != nil {
		return err
	}
	if err := r.define(ctx, installed); err != nil {
		return err
	}
	if takes {
		if err := r.takenOver(ctx, ownership.ReleaseCRD); err != nil {
			return err
		}
	}
	return r.established(ctx, wanted.Definitions)
}

// newer returns the newer one of two versions. The first may be empty.
func newer(a, b string) string {
	if karpenter.Compare(a, b) > 0 {
		return a
	}
	return b
}

// installed returns the newest version whose CRDs Sawhorse has installed, or "", and whether a CRD is one of a Helm release.
func (r *run) installed(ctx context.Context) (newest string, released bool, err error) {
	for _, name := range r.plan.Controller.CRDs.Definitions {
		crd, err := r.client.Get(ctx, k8s.CustomResourceDefinition, "", name)
		if err != nil {
			return "", false, err
		}
		if crd != nil {
			newest = newer(newest, crd.GetLabels()[labelVersion])
			released = released || k8s.Released(crd, ownership.ReleaseCRD)
		}
	}
	return newest, released, nil
}

// define applies the CRDs of the plan's version, or of the installed one if that is newer: an earlier rack of the cluster may have
// left them, stored objects may need them, and the next plan is for them. If this function does not have that version, they stay
// as they are. If the plan names another chart of the version, a later pass does the step again: the plan is a stored one, or other
// functions are being deployed at the same time.
func (r *run) define(ctx context.Context, installed string) error {
	wanted := r.plan.Controller.CRDs
	version := newer(installed, wanted.Version)
	release, err := karpenter.Find(version)
	switch {
	case err != nil && version != wanted.Version:
		return nil
	case err != nil:
		return fmt.Errorf("release %s: the plan wants version %q and this function carries %s; the next pass makes a new plan",
			ownership.ReleaseCRD, version, strings.Join(karpenter.Versions(), ", "))
	}
	r.progress.Unfinished = wanted.Chart != release.ChartDigests[ownership.ReleaseCRD]
	definitions, err := manifests(release, r.plan.Rack)
	if err != nil {
		return err
	}
	return r.apply(ctx, change{ownership.ReleaseCRD, installed, version}, definitions)
}

// manifests returns the CRDs of a version, sorted by name. Their annotation keeps them, and with them every NodePool, from a Helm
// that still has a record of them.
func manifests(release karpenter.Release, rack string) ([]plan.Object, error) {
	texts, err := release.CRDs()
	if err != nil {
		return nil, err
	}
	var all []plan.Object
	for _, name := range release.CRDNames {
		var crd plan.Object
		if err := yaml.Unmarshal(texts[name], &crd); err != nil {
			return nil, fmt.Errorf("CRD %s of Karpenter %s: %w", name, release.Version, err)
		}
		meta, _ := crd["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
		}
		annotations["helm.sh/resource-policy"] = "keep"
		meta["annotations"] = annotations
		meta["labels"] = map[string]any{
			ownership.TagRack: rack, labelVersion: release.Version, "app.kubernetes.io/managed-by": ownership.ManagedBy,
		}
		all = append(all, crd)
	}
	return all, nil
}

// rejectCRDs rejects the plan because of CRDs of somebody else. They may be new in the plan's version.
func (r *run) rejectCRDs(found []string, installed string) error {
	had, err := karpenter.Find(installed)
	known := func(name string) bool { return slices.Contains(found, "CustomResourceDefinition/"+name) }
	if err != nil || slices.ContainsFunc(had.CRDNames, known) {
		return r.reject(found)
	}
	return refusals.CRDs(found, r.plan.Controller.CRDs.Version, installed)
}

// noteCRDs records the newest version whose CRDs the cluster may have, before they are installed: if the call is stopped in
// between, no pass installs older ones.
func (r *run) noteCRDs(ctx context.Context, version string) error {
	_, err := r.note(ctx, func(record *plan.KarpenterRecord) { record.CRDs = newer(record.CRDs, version) })
	return err
}

// established waits until the API server serves the CRDs.
func (r *run) established(ctx context.Context, names []string) error {
	for _, name := range names {
		crd, err := r.client.Get(ctx, k8s.CustomResourceDefinition, "", name)
		if err != nil {
			return err
		}
		if crd == nil {
			return outcome.Wait(poll, "CustomResourceDefinition/%s: not there yet", name)
		}
		if established, note := k8s.Established(crd); !established {
			return outcome.Wait(poll, "%s: %s", k8s.Subject(crd), note)
		}
	}
	return nil
}
