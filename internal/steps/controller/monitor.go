package controller

import (
	"context"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const (
	// monitorAPI is the API of the Prometheus Operator. The chart makes a ServiceMonitor only if the cluster has it.
	monitorAPI = "monitoring.coreos.com/v1"
	monitorCRD = "servicemonitors.monitoring.coreos.com"
)

// told returns what the templates are told about the cluster: of its APIs only the one that the release's values ask for.
func (r *run) told(ctx context.Context, release plan.Release) (*common.Capabilities, error) {
	monitor, _ := release.Values["serviceMonitor"].(map[string]any)
	if monitor["enabled"] != true {
		return capabilities, nil
	}
	crd, err := r.client.Get(ctx, k8s.CustomResourceDefinition, "", monitorCRD)
	if err != nil {
		return nil, err
	}
	if crd == nil {
		r.progress.Warn("karpenter_controller_config", "serviceMonitor.enabled is true, but the cluster has no ServiceMonitors; install the "+
			"Prometheus Operator, and the next audit makes one; or leave serviceMonitor out")
		return capabilities, nil
	}
	more := *capabilities
	more.APIVersions = append(slices.Clone(capabilities.APIVersions), monitorAPI)
	return &more, nil
}

// unmonitor deletes the release's ServiceMonitor if the rendered release has none. Helm does not, because it sees of an
// earlier revision only the objects of the wanted one.
func (r *run) unmonitor(ctx context.Context, wanted rendered) error {
	if wanted.capabilities.APIVersions.Has(monitorAPI) {
		return nil
	}
	live, err := r.client.Get(ctx, k8s.ServiceMonitor, ownership.Namespace, ownership.ReleaseController)
	if err != nil || live == nil || k8s.Owned(live, r.plan.Rack) != nil || live.GetDeletionTimestamp() != nil {
		return err
	}
	if err := r.client.Delete(ctx, k8s.ServiceMonitor, live); err != nil {
		return err
	}
	r.progress.Changed("deleted", "%s", k8s.Subject(live))
	return nil
}
