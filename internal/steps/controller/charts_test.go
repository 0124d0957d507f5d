package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// planned is a plan with every value of the chart that Sawhorse ever sets.
func planned(version string) *plan.Plan {
	return &plan.Plan{Rack: "demo", Cluster: plan.Cluster{Name: "demo"}, Controller: plan.Controller{
		Version: version, Queue: "demo-karpenter", RoleARN: "arn:aws:iam::123456789012:role/sawhorse/demo-karpenter",
		IsolatedVPC: true, ImageRepository: "123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter",
	}}
}

// The charts of every version render with the plan's values, on the oldest and on the newest Kubernetes of that version.
func TestEveryVersionRenders(t *testing.T) {
	before := capabilities
	t.Cleanup(func() { capabilities = before })
	for _, release := range karpenter.All() {
		for _, minor := range []string{release.Kubernetes.Oldest, release.Kubernetes.Newest} {
			version, err := common.ParseKubeVersion("v" + minor + ".0")
			if err != nil {
				t.Fatal(err)
			}
			copied := *before
			copied.KubeVersion = *version
			capabilities = &copied
			crds, err := render(names.ReleaseCRD, release.Version, crdValues())
			if err != nil {
				t.Fatal(err)
			}
			definitions, err := release.CRDs()
			if err != nil {
				t.Fatal(err)
			}
			if kept := strings.Count(crds.manifest, "helm.sh/resource-policy: keep"); kept != len(definitions) {
				t.Errorf("%s on %s: %d of %d CRDs are kept when the release is uninstalled", release.Version, minor, kept, len(definitions))
			}
			controller, err := render(names.ReleaseController, release.Version, controllerValues(planned(release.Version), 2))
			if err != nil {
				t.Fatal(err)
			}
			checkDeployment(t, release, onlyDeployment(t, controller.manifest))
		}
	}
}

// onlyDeployment decodes the only Deployment of a manifest.
func onlyDeployment(t *testing.T, manifest string) (found appsv1.Deployment) {
	t.Helper()
	count := 0
	for text := range strings.SplitSeq(manifest, "---\n") {
		var object appsv1.Deployment
		if !strings.Contains(text, "\nkind: Deployment\n") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		found = object
		count++
	}
	if count != 1 {
		t.Fatalf("%d Deployments in %s", count, manifest)
	}
	return found
}

// checkDeployment checks what the plan's values must change in a version's Deployment.
func checkDeployment(t *testing.T, release karpenter.Release, d appsv1.Deployment) {
	t.Helper()
	pod := d.Spec.Template
	container := pod.Spec.Containers[0]
	image := "123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter:" + release.Version
	if release.Digest != "" {
		image += "@" + release.Digest
	}
	if container.Image != image {
		t.Errorf("%s: the image is %s, want %s", release.Version, container.Image, image)
	}
	variables := map[string]string{}
	for _, variable := range container.Env {
		variables[variable.Name] = variable.Value
	}
	for name, want := range map[string]string{"CLUSTER_NAME": "demo", "INTERRUPTION_QUEUE": "demo-karpenter", "ISOLATED_VPC": "true"} {
		if variables[name] != want {
			t.Errorf("%s: %s is %q, want %q", release.Version, name, variables[name], want)
		}
	}
	for gate := range strings.SplitSeq(variables["FEATURE_GATES"]+","+variables["AWS_FEATURE_GATES"], ",") {
		name, value, _ := strings.Cut(gate, "=")
		if on, err := strconv.ParseBool(value); name != "" && (err != nil || on != (name == "ReservedCapacity")) {
			t.Errorf("%s: the feature gate is %s", release.Version, gate)
		}
	}
	memory := container.Resources.Requests.Memory().String()
	if *d.Spec.Replicas != 2 || pod.Spec.NodeSelector[names.LabelSystemNode] != "true" || memory != "256Mi" ||
		pod.Annotations["karpenter.sh/do-not-disrupt"] != "true" || d.Labels[names.TagRack] != "demo" {
		t.Errorf("%s: %d replicas on %v with %s, annotations %v, labels %v", release.Version, *d.Spec.Replicas, pod.Spec.NodeSelector, memory, pod.Annotations, d.Labels)
	}
}

// Every chart has the values that the plan sets: Helm ignores a value that a chart does not know.
func TestEveryVersionKnowsTheValues(t *testing.T) {
	for _, release := range karpenter.All() {
		for name, values := range map[string]map[string]any{
			names.ReleaseCRD: crdValues(), names.ReleaseController: controllerValues(planned(release.Version), 2),
		} {
			chart, err := load(name, release.Version)
			if err != nil {
				t.Fatal(err)
			}
			if unknown := unknownTo(chart.Values, values, ""); len(unknown) > 0 {
				t.Errorf("%s: the chart %s does not have %v", release.Version, name, unknown)
			}
		}
	}
}

// unknownTo returns the paths of values that a chart's values do not have. An empty map in the chart takes any keys.
func unknownTo(chart, values map[string]any, path string) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		known, ok := chart[key]
		if !ok {
			all = append(all, path+key)
			continue
		}
		inner, isMap := values[key].(map[string]any)
		if below, _ := known.(map[string]any); isMap && len(below) > 0 {
			all = append(all, unknownTo(below, inner, fmt.Sprintf("%s%s.", path, key))...)
		}
	}
	return all
}

// A version that is not in the catalogue has no chart.
func TestUnknownVersionHasNoChart(t *testing.T) {
	_, err := load(names.ReleaseController, "1.9.0")
	if err == nil || !strings.Contains(err.Error(), `Sawhorse does not have Karpenter "1.9.0"; it has 1.10.0, `) {
		t.Errorf("got %v", err)
	}
}
