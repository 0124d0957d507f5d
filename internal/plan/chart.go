package plan

import (
	"slices"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Controller describes Karpenter's CRDs, its controller and the NVIDIA device plugin.
type Controller struct {
	// CRDs are Karpenter's CustomResourceDefinitions. They are never removed again.
	CRDs CRDs `json:"crds"`
	// Release is Karpenter's controller. It is complete also if it must be removed, because a removal needs a working
	// controller until the last node is gone.
	Release Release `json:"release"`
	// Previous is the release of the version in force if Release has another version. The step brings it back if the
	// other version fails.
	Previous *Release `json:"previous,omitempty"`
	// Write is the version of the parameter karpenter_version in Parameter Store, if it asks for a change.
	Write int64 `json:"write,omitempty"`
	// DevicePlugin is the DaemonSet of the NVIDIA device plugin. It is nil if it must be removed.
	DevicePlugin Object `json:"devicePlugin,omitempty"`
}

// CRDs describes Karpenter's CustomResourceDefinitions. The step has them in its own catalogue: together they are larger than
// what DynamoDB stores in an item.
type CRDs struct {
	// Present means that they are installed.
	Present bool `json:"present"`
	// Version is the version of Karpenter.
	Version string `json:"version"`
	// Chart is the digest of the chart's files.
	Chart string `json:"chart"`
	// Definitions are the names of the CustomResourceDefinitions.
	Definitions []string `json:"definitions"`
}

// Release describes what the chart of Karpenter's controller makes.
type Release struct {
	// Present means that the objects exist.
	Present bool   `json:"present"`
	Name    string `json:"name"`
	// Version is the version of the chart and of Karpenter.
	Version string `json:"version"`
	// Values are the chart values that Sawhorse sets. All others are the chart's defaults.
	Values map[string]any `json:"values"`
	// Replicas is the controller's replicas if the system nodes span as many zones. Otherwise they are 1. The step sets them,
	// because only the cluster knows the zones of its nodes.
	Replicas int `json:"replicas,omitempty"`
	// Objects are what the chart renders from the values, in the order in which they are applied. Package charts adds them to
	// the plan of a pass.
	Objects []Object `json:"objects,omitempty"`
}

// controller plans the CRDs, the controller and the device plugin.
func (b *builder) controller() {
	values := b.config.ControllerValues
	b.plan.Controller = Controller{CRDs: b.definitions().crds(), Release: b.release(b.karpenter, values)}
	if b.changes() {
		if release, err := catalogue.Find(b.facts.Records.InForce()); err == nil {
			previous := versionOf(release)
			b.plan.Controller.Previous = new(b.release(previous, within(values, previous.values())))
			b.plan.Controller.Write = b.facts.Writes[params.ParamVersion]
		}
	}
	b.monitored()
	if b.config.Enabled && b.config.NVIDIADevicePlugin {
		b.plan.Controller.DevicePlugin = devicePlugin(b.config.Rack)
	}
}

// MonitorAPI is the API of the Prometheus Operator. The chart makes a ServiceMonitor only if the cluster has it.
const MonitorAPI = "monitoring.coreos.com/v1"

// Monitored reports whether a release's values ask for a ServiceMonitor.
func Monitored(values map[string]any) bool {
	return fields(values["serviceMonitor"])["enabled"] == true
}

// Has reports whether a release has an object of a kind.
func (r Release) Has(kind string) bool {
	return slices.ContainsFunc(r.Objects, func(object Object) bool { return object["kind"] == kind })
}

// monitored warns if a ServiceMonitor is asked for and the cluster is known to have none.
func (b *builder) monitored() {
	if b.config.Enabled && Monitored(b.plan.Controller.Release.Values) && b.facts.APIs != nil && !slices.Contains(b.facts.APIs, MonitorAPI) {
		b.warn(params.ParamController, "serviceMonitor.enabled is true, but the cluster has no ServiceMonitors; install the Prometheus "+
			"Operator, and the next audit makes one; or leave serviceMonitor out")
	}
}

func (k karpenter) crds() CRDs {
	return CRDs{Present: true, Version: k.Version, Chart: k.ChartDigests[ownership.ReleaseCRD], Definitions: k.CRDNames}
}

// release describes a version's controller with values of karpenter_controller_config.
func (b *builder) release(k karpenter, values map[string]any) Release {
	made := Release{
		Present: b.config.Enabled, Name: ownership.ReleaseController, Version: k.Version,
		Values: b.controllerValues(k, values), Replicas: 1,
	}
	if b.config.HighAvailability {
		made.Replicas = 2
	}
	return made
}

// ControllerRequests are what Karpenter's controller requests unless karpenter_controller_config says otherwise.
var ControllerRequests = map[string]any{"cpu": "200m", "memory": "256Mi"}

// controllerValues returns the values of the controller's chart, except replicas. Those of the rack's parameter stand
// over Sawhorse's recommendation and under what only Sawhorse may set.
func (b *builder) controllerValues(k karpenter, values map[string]any) map[string]any {
	account := map[string]any{"name": ownership.ServiceAccount}
	if !b.plan.Infrastructure.PodIdentity {
		account["annotations"] = map[string]any{"eks.amazonaws.com/role-arn": b.plan.Infrastructure.Controller.ARN}
	}
	// Without a digest in the catalogue, the tag alone selects the image, so imageRepository limits where it comes from. The
	// image in a mirror has the same digest.
	image := map[string]any{"tag": k.Version}
	if k.Digest != "" {
		image["digest"] = k.Digest
	}
	if b.config.ImageRepository != "" {
		image["repository"] = b.config.ImageRepository
	}
	settings := map[string]any{"clusterName": b.plan.Cluster.Name, "interruptionQueue": b.plan.Queue.Name}
	if b.config.IsolatedVPC {
		settings["isolatedVPC"] = true
	}
	if len(b.config.Overlays) > 0 {
		settings["featureGates"] = map[string]any{"nodeOverlay": true}
	}
	recommended := map[string]any{"controller": map[string]any{"resources": map[string]any{"requests": ControllerRequests}}}
	if fields(values["strategy"])["type"] == "Recreate" { // which takes no parameters, and the chart has those of RollingUpdate
		recommended["strategy"] = map[string]any{"rollingUpdate": nil}
	}
	return merged(merged(recommended, values), map[string]any{
		"additionalLabels": map[string]any{ownership.TagRack: b.config.Rack},
		"serviceAccount":   account,
		"nodeSelector":     map[string]any{ownership.LabelSystemNode: "true"},
		"podAnnotations":   map[string]any{"karpenter.sh/do-not-disrupt": "true"},
		"settings":         settings,
		"controller":       map[string]any{"image": image},
	})
}
