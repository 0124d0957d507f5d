// Package refusals has the rejections that several steps, or a step and validate, have in common, because of what others have in the
// cluster.
package refusals

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Autoscaler returns the Cluster Autoscaler among a cluster's Deployments, or nil if there is none. If there are several,
// named (namespace/name) selects one. It returns a *outcome.Rejected if named does not exist or does not run Cluster
// Autoscaler's image, or if there are two and none is named. The image is checked because the Deployment may be scaled to
// zero. One that was handed over for the rack stays usable if its image gets another name.
func Autoscaler(deployments []unstructured.Unstructured, rack, named string) (*unstructured.Unstructured, error) {
	if named != "" {
		found := k8s.Find(deployments, named)
		if found == nil {
			return nil, outcome.Reject("cluster_autoscaler", "cluster_autoscaler is %q, but the cluster has no Deployment of that name; "+
				"write the namespace/name of the Deployment that runs Cluster Autoscaler%s, "+
				"or unset, and Sawhorse finds it by its image", named, suggestion(deployments))
		}
		if k8s.AutoscalerContainer(found) < 0 && found.GetAnnotations()[ownership.AnnotationAutoscaler] != rack {
			return nil, outcome.Reject("cluster_autoscaler",
				"cluster_autoscaler is %q, a Deployment that runs %s and not an image named %s, and what hands over may be scaled "+
					"to zero; write the namespace/name of the Deployment that runs Cluster Autoscaler%s, "+
					"or unset, and Sawhorse finds it by its image; a mirror of the image must keep that name", named,
				strings.Join(k8s.Images(found), ", "), k8s.AutoscalerImage, suggestion(deployments))
		}
		return found, nil
	}
	found := k8s.Autoscalers(deployments)
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return k8s.Find(deployments, found[0]), nil
	}
	return nil, outcome.Reject("karpenter_enabled",
		"the cluster has %d Cluster Autoscalers: %s; Sawhorse hands over from one; name it in cluster_autoscaler, or delete the others",
		len(found), strings.Join(found, ", "))
}

// suggestion names the Deployments that run the image of Cluster Autoscaler.
func suggestion(deployments []unstructured.Unstructured) string {
	if found := k8s.Autoscalers(deployments); len(found) > 0 {
		return " (" + strings.Join(found, " or ") + " looks like it)"
	}
	return ""
}

// UnmanagedDevicePlugin returns a *outcome.Rejected if a DaemonSet has the name of the NVIDIA device plugin and does
// not belong to the rack.
func UnmanagedDevicePlugin(ctx context.Context, client *k8s.Client, rack string) error {
	live, err := client.Get(ctx, k8s.DaemonSet, ownership.Namespace, ownership.DevicePlugin)
	if err != nil || k8s.Owned(live, rack) == nil {
		return err
	}
	return outcome.Reject("nvidia_device_plugin_enable",
		"nvidia_device_plugin_enable is true, but %s exists and Sawhorse did not make it for rack %s; write false to keep that one, "+
			"or delete it with `kubectl -n %s delete daemonset %s` and the next pass installs Sawhorse's own", k8s.Subject(live), rack,
		ownership.Namespace, ownership.DevicePlugin)
}

// PriorityClass returns a *outcome.Rejected if the values of the controller's chart name a PriorityClass that the cluster does not have.
// The API server would refuse each new pod of the controller, for which the Deployment ends an old one, and that may be the only one.
func PriorityClass(ctx context.Context, client *k8s.Client, values map[string]any) error {
	name := ClassOf(values)
	if name == "" || name == "system-cluster-critical" || name == "system-node-critical" { // Kubernetes' own are always there
		return nil
	}
	if class, err := client.Get(ctx, k8s.PriorityClass, "", name); err != nil || class != nil {
		return err
	}
	return outcome.Reject("karpenter_controller_config", "priorityClassName is %s, and the cluster has no PriorityClass of that name; "+
		"create it, or write one that `kubectl get priorityclasses` lists", name)
}

// ClassOf returns the PriorityClass that the values of the controller's chart name, or "".
func ClassOf(values map[string]any) string {
	name, _ := values["priorityClassName"].(string)
	return name
}

// CRDs returns the *outcome.Rejected of a version of Karpenter that brings CRDs which the cluster has from something else. had is the
// version before.
func CRDs(found []string, version, had string) error {
	return outcome.Reject("karpenter_version", "Karpenter %s brings %s, and the cluster has it from something else. Hand it over as "+
		"docs/migrate-karpenter.md describes, or write karpenter_version %s.", version, strings.Join(found, ", "), had)
}

// UnmanagedNodePools returns a *outcome.Rejected if there are NodePools that Sawhorse did not make, because they
// would lose their controller. If the removal goes on, it adds a warning instead.
func UnmanagedNodePools(foreign []string, goesOn bool, progress *outcome.Progress) error {
	if len(foreign) == 0 {
		return nil
	}
	all := strings.Join(foreign, ", ")
	if goesOn {
		progress.Warn("karpenter_enabled", "The cluster has NodePools that Sawhorse did not make: %s. They stay. Unless another Karpenter "+
			"serves them, their nodes run on without a controller: nobody scales, replaces or ends them until you do. Nodes with the rack's "+
			"own role lose their access to the cluster. Have another Karpenter take the pools over, or move their pods to other nodes.", all)
		return nil
	}
	return outcome.Reject("karpenter_enabled", "karpenter_enabled is false, but the cluster has NodePools that Sawhorse did not make: %s; "+
		"without Karpenter's controller nobody would scale, replace or end their nodes; "+
		"let whoever made them take them out once their pods run elsewhere: each audit of the schedule tries again; "+
		"or send Rack Reconcile Requested with \"force\": [\"foreign-pools\"], which leaves them and their nodes behind",
		all)
}
