package controller

import (
	"context"
	"slices"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// refuseUnmanagedCRDs rejects the plan if the cluster has CRDs of somebody else that the last revision did not have. Helm
// refuses them too, but then the rack's record already names the newer ones.
func (r *run) refuseUnmanagedCRDs(ctx context.Context, last *release.Release) error {
	added := r.plan.Controller.CRDs.Definitions
	if last != nil {
		had, err := karpenter.Find(last.Chart.Metadata.Version)
		if err != nil {
			return nil // those of a later Sawhorse stay as they are
		}
		added = slices.DeleteFunc(slices.Clone(added), func(name string) bool { return slices.Contains(had.CRDNames, name) })
	}
	found, err := r.client.UnmanagedCRDs(ctx, added)
	switch {
	case err != nil || len(found) == 0:
		return err
	case last == nil:
		return reject(found)
	}
	return outcome.Reject("karpenter_version", "Karpenter %s brings %s, and the cluster has it from something else. Hand it over as "+
		"docs/migrate-karpenter.md describes, or write karpenter_version %s.", r.plan.Controller.CRDs.Version, strings.Join(found, ", "),
		last.Chart.Metadata.Version)
}

func reject(found []string) error {
	return outcome.Reject("karpenter_enabled", "The cluster already has a Karpenter that Sawhorse did not install: %s. "+
		"Uninstall its controller first and hand its CRDs over, as docs/migrate-karpenter.md describes, or leave karpenter_enabled at false.",
		strings.Join(found, ", "))
}

// conflicting turns Helm's refusal to adopt an object that it did not create for this release into a Rejected.
func conflicting(err error, parameter, otherwise string) error {
	if !strings.Contains(err.Error(), "invalid ownership metadata") {
		return err
	}
	return outcome.Reject(parameter, "An object of Karpenter's chart exists already and was made by something else "+
		"(%v). Delete it, hand it over as docs/migrate-karpenter.md describes, or %s.", err, otherwise)
}
