package controller

import (
	"context"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// prune deletes the release's ServiceMonitor if the wanted one has none: the chart's values choose whether there is one. Helm
// does not delete it, because it sees of an earlier revision only the objects of the wanted one.
func (r *run) prune(ctx context.Context, wanted rendered) error {
	objects, err := wanted.objects()
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, object := range objects {
		keep[k8s.Subject(&unstructured.Unstructured{Object: object})] = true
	}
	ours := ownership.TagRack + "=" + r.plan.Rack + ",app.kubernetes.io/instance=" + ownership.ReleaseController
	found, err := r.client.List(ctx, k8s.ServiceMonitor, ownership.Namespace, ours)
	if err != nil {
		return err
	}
	for i := range found {
		subject := k8s.Subject(&found[i])
		if keep[subject] || found[i].GetDeletionTimestamp() != nil {
			continue
		}
		if err := r.client.Delete(ctx, k8s.ServiceMonitor, &found[i]); err != nil {
			return err
		}
		r.progress.Changed("deleted", "%s", subject)
	}
	return nil
}
