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
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// wanted returns the plan of a rack with Karpenter and these settings.
func wanted(config params.Config) *plan.Plan {
	return planned(config, true)
}

func planned(config params.Config, podIdentity bool) *plan.Plan {
	config.Rack, config.ClusterName, config.AuthMode, config.Enabled = "demo", "demo", true, true
	made := plan.Build(config, plan.Facts{
		Cluster:     &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo", Partition: "aws"}, Status: "ACTIVE"},
		PodIdentity: podIdentity, OIDCProvider: !podIdentity,
		Subnets: []plan.Tagged{{ID: "subnet-a"}}, NodeGroups: []plan.NodeGroup{{Name: "system"}},
	}, nil)
	if len(made.Problems) > 0 {
		panic(fmt.Sprint(made.Problems))
	}
	return &made.Plan
}

const mirror = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter"

// everyValue returns both releases with every value that a plan ever sets, for a version of Karpenter.
func everyValue(release karpenter.Release) plan.Controller {
	made := planned(params.Config{HighAvailability: true, IsolatedVPC: true, ImageRepository: mirror}, false).Controller
	image := made.Release.Values["controller"].(map[string]any)["image"].(map[string]any)
	image["tag"], image["digest"] = release.Version, release.Digest
	made.Release.Values["replicas"] = 2
	return made
}

// Plans name the charts of the catalogue, so that the steps are due when a chart changes.
func TestPlansNameTheCharts(t *testing.T) {
	made := wanted(params.Config{}).Controller
	for _, release := range []plan.Release{made.CRDs, made.Release} {
		want := karpenter.Default()
		if release.Version != want.Version || release.Chart != want.ChartDigests[release.Name] || release.Chart == "" {
			t.Errorf("release %s: %s %s, want %s %v", release.Name, release.Version, release.Chart, want.Version, want.ChartDigests)
		}
	}
}

// The chart of another deployment is not in the plan's words: the step applies its own, and is not done.
func TestAPlanWithAnotherChart(t *testing.T) {
	s := begin(t)
	s.plan.Controller.CRDs.Chart = "sha256:another"
	if progress := s.run(PartCRDs, "installed release karpenter-crd 1.10.0"); !progress.Unfinished {
		t.Errorf("%+v", progress)
	}
	s.settle()
	if progress := s.run(PartRelease, "installed release karpenter 1.10.0"); progress.Unfinished {
		t.Errorf("its chart is the plan's: %+v", progress)
	}
}

// The charts of every version render with a plan's values, on the oldest and on the newest Kubernetes of that version.
func TestEveryVersionRenders(t *testing.T) {
	before := capabilities
	t.Cleanup(func() { capabilities = before })
	for _, release := range karpenter.All() {
		wanted := everyValue(release)
		for _, minor := range []string{release.Kubernetes.Oldest, release.Kubernetes.Newest} {
			version, err := common.ParseKubeVersion("v" + minor + ".0")
			if err != nil {
				t.Fatal(err)
			}
			copied := *before
			copied.KubeVersion = *version
			capabilities = &copied
			crds, err := render(ownership.ReleaseCRD, release.Version, wanted.CRDs.Values)
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
			controller, err := render(ownership.ReleaseController, release.Version, wanted.Release.Values)
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
	image := mirror + ":" + release.Version
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
	// A change of the version takes one of two pods away before a new one is Ready, and not the other.
	strategy := d.Spec.Strategy.RollingUpdate
	if strategy == nil || strategy.MaxUnavailable == nil || strategy.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%s: strategy %+v", release.Version, d.Spec.Strategy)
	}
	memory := container.Resources.Requests.Memory().String()
	if *d.Spec.Replicas != 2 || pod.Spec.NodeSelector[ownership.LabelSystemNode] != "true" || memory != "256Mi" ||
		pod.Annotations["karpenter.sh/do-not-disrupt"] != "true" || d.Labels[ownership.TagRack] != "demo" {
		t.Errorf("%s: %d replicas on %v with %s, annotations %v, labels %v",
			release.Version, *d.Spec.Replicas, pod.Spec.NodeSelector, memory, pod.Annotations, d.Labels)
	}
}

// The objects of the controller's chart have the same names in every version: a removal deletes those of the default.
func TestEveryVersionHasTheSameObjects(t *testing.T) {
	subjects := func(version string) (all []string) {
		release, err := karpenter.Find(version)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := render(ownership.ReleaseController, version, everyValue(release).Release.Values)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := whole.objects()
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			meta := object["metadata"].(map[string]any)
			all = append(all, fmt.Sprint(object["kind"], " ", meta["namespace"], " ", meta["name"]))
		}
		slices.Sort(all)
		return all
	}
	want := subjects(ownership.KarpenterVersion)
	if len(want) < 8 {
		t.Fatalf("the chart has only %v", want)
	}
	for _, version := range karpenter.Versions() {
		if got := subjects(version); !slices.Equal(got, want) {
			t.Errorf("%s has %v\nand the default %v", version, got, want)
		}
	}
}

// Every chart has the values that the plan sets: Helm ignores a value that a chart does not know.
func TestEveryVersionKnowsTheValues(t *testing.T) {
	for _, release := range karpenter.All() {
		wanted := everyValue(release)
		for _, planned := range []plan.Release{wanted.CRDs, wanted.Release} {
			name, values := planned.Name, planned.Values
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

// unknownTo returns the paths of values that a chart's values do not have. An empty map in the chart takes any keys, and so
// does a selector.
func unknownTo(chart, values map[string]any, path string) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		known, ok := chart[key]
		if !ok {
			all = append(all, path+key)
			continue
		}
		inner, isMap := values[key].(map[string]any)
		if below, _ := known.(map[string]any); isMap && len(below) > 0 && key != "nodeSelector" {
			all = append(all, unknownTo(below, inner, fmt.Sprintf("%s%s.", path, key))...)
		}
	}
	return all
}

// A version that is not in the catalogue has no chart.
func TestUnknownVersionHasNoChart(t *testing.T) {
	_, err := load(ownership.ReleaseController, "1.9.0")
	if err == nil || !strings.Contains(err.Error(), `karpenter "1.9.0" is no version that Sawhorse has; it has 1.10.0, `) {
		t.Errorf("got %v", err)
	}
}
