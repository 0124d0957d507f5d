package controller

import (
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// crdValues keeps the CRDs, and with them every NodePool, when the release is uninstalled. The chart itself sets no
// such policy.
func crdValues() map[string]any {
	return map[string]any{"additionalAnnotations": map[string]any{"helm.sh/resource-policy": "keep"}}
}

// controllerValues returns the chart values that Sawhorse sets. All others are the chart's defaults.
func controllerValues(p *plan.Plan, replicas int) map[string]any {
	account := map[string]any{"name": names.ServiceAccount}
	if p.Controller.RoleARN != "" {
		account["annotations"] = map[string]any{"eks.amazonaws.com/role-arn": p.Controller.RoleARN}
	}
	// Without a digest in the catalogue, the tag alone selects the image. The image in a mirror has the same digest.
	image := map[string]any{"tag": p.Controller.Version}
	if release, err := karpenter.Find(p.Controller.Version); err == nil && release.Digest != "" {
		image["digest"] = release.Digest
	}
	if p.Controller.ImageRepository != "" {
		image["repository"] = p.Controller.ImageRepository
	}
	settings := map[string]any{"clusterName": p.Cluster.Name, "interruptionQueue": p.Controller.Queue}
	if p.Controller.IsolatedVPC {
		settings["isolatedVPC"] = true
	}
	return map[string]any{
		"additionalLabels": map[string]any{names.TagRack: p.Rack},
		"replicas":         replicas,
		"serviceAccount":   account,
		"nodeSelector":     map[string]any{names.LabelSystemNode: "true"},
		"podAnnotations":   map[string]any{"karpenter.sh/do-not-disrupt": "true"},
		"settings":         settings,
		"controller": map[string]any{
			"image":     image,
			"resources": map[string]any{"requests": map[string]any{"cpu": "200m", "memory": "256Mi"}},
		},
	}
}
