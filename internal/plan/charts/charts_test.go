package charts_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/charts"
)

const mirror = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter"

// facts are those of a cluster without Pod Identity, on a version of Kubernetes.
func facts(kubernetes string) plan.Facts {
	return plan.Facts{
		Cluster:    &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo", Partition: "aws"}, Status: "ACTIVE", Version: kubernetes},
		Deployment: plan.Deployment{ImageRepositories: []string{mirror}}, OIDCProvider: true,
		Subnets: []plan.Tagged{{ID: "subnet-a"}}, NodeGroups: []plan.NodeGroup{{Name: "system"}},
	}
}

// rendered returns a rack's plan with the objects of a version's chart. It has every value that a plan ever sets.
func rendered(t *testing.T, release karpenter.Release, facts plan.Facts) plan.Plan {
	t.Helper()
	made := plan.Build(params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: true, HighAvailability: true,
		IsolatedVPC: true, ImageRepository: mirror, KarpenterVersion: release.Version}, facts, nil)
	if len(made.Problems) > 0 {
		t.Fatal(made.Problems)
	}
	if err := charts.Add(&made.Plan, facts); err != nil {
		t.Fatalf("%s: %v", release.Version, err)
	}
	return made.Plan
}

// The chart of every version renders with a plan's values, on the oldest and on the newest Kubernetes of that version.
func TestEveryVersionRenders(t *testing.T) {
	for _, release := range karpenter.All() {
		for _, minor := range []string{release.Kubernetes.Oldest, release.Kubernetes.Newest} {
			checkDeployment(t, release, onlyDeployment(t, rendered(t, release, facts(minor)).Controller.Release.Objects))
		}
	}
}

// Only plans that install or remove the controller have its objects.
func TestPlansWithoutAController(t *testing.T) {
	made := plan.Build(params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true}, facts("1.35"), nil)
	if err := charts.Add(&made.Plan, facts("1.35")); err != nil || len(made.Plan.Controller.Release.Objects) > 0 || len(made.Problems) > 0 {
		t.Errorf("%v, %v", err, made.Plan.Controller.Release.Objects)
	}
}

// The same plan gives the same objects, byte for byte: a step would be due otherwise.
func TestDeterministic(t *testing.T) {
	want := canonical.JSON(rendered(t, karpenter.Default(), facts("1.35")))
	for range 20 {
		if got := canonical.JSON(rendered(t, karpenter.Default(), facts("1.35"))); !bytes.Equal(got, want) {
			t.Fatalf("%s\nbefore %s", got, want)
		}
	}
}

var update = flag.Bool("update", false, "write testdata anew")

// The objects of a rack, to be read by people.
func TestGolden(t *testing.T) {
	objects := rendered(t, karpenter.Default(), facts("1.35")).Controller.Release.Objects
	var got bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "---\n%s", text)
	}
	const file = "testdata/karpenter-1.10.0.yaml"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%v; the objects differ from %s:\n%s", err, file, got.String())
	}
}

// A version that changes has the objects of both versions, so that the one before can come back.
func TestTheVersionBefore(t *testing.T) {
	of := facts("1.35")
	of.Records = plan.Records{WasOn: true, Goal: plan.GoalKarpenter, Karpenter: plan.KarpenterRecord{Version: "1.12.1"}}
	p := rendered(t, karpenter.Default(), of)
	for version, release := range map[string]*plan.Release{"1.10.0": &p.Controller.Release, "1.12.1": p.Controller.Previous} {
		deployment := onlyDeployment(t, release.Objects)
		if got := deployment.Labels["app.kubernetes.io/version"]; got != version {
			t.Errorf("the objects of %s are those of %s", version, got)
		}
	}
}

// A ServiceMonitor needs the values and the cluster's API.
func TestServiceMonitor(t *testing.T) {
	for _, c := range []struct {
		enabled bool
		apis    []string
		want    bool
	}{{true, []string{plan.MonitorAPI}, true}, {true, []string{}, false}, {true, nil, false}, {false, []string{plan.MonitorAPI}, false}} {
		of := facts("1.35")
		of.APIs = c.apis
		made := plan.Build(params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: true,
			ControllerValues: map[string]any{"serviceMonitor": map[string]any{"enabled": c.enabled}}}, of, nil)
		if err := charts.Add(&made.Plan, of); err != nil || made.Plan.Controller.Release.Has("ServiceMonitor") != c.want {
			t.Errorf("%+v: %v, %v", c, err, made.Plan.Controller.Release.Has("ServiceMonitor"))
		}
		// Nobody is warned of what was not looked up.
		warned := strings.Contains(fmt.Sprint(made.Warnings), "the cluster has no ServiceMonitors")
		if warned != (c.enabled && c.apis != nil && !c.want) {
			t.Errorf("%+v: %v", c, made.Warnings)
		}
	}
}

// Every object is the rack's and says who manages it, so that a later plan without it deletes it.
func TestEveryObjectIsMarked(t *testing.T) {
	for _, release := range karpenter.All() {
		of := facts(release.Kubernetes.Newest)
		of.APIs = []string{plan.MonitorAPI}
		for _, object := range rendered(t, release, of).Controller.Release.Objects {
			labels, _ := at(object, "metadata", "labels").(map[string]any)
			for key, want := range map[string]string{ownership.TagRack: "demo", "app.kubernetes.io/instance": "karpenter",
				"app.kubernetes.io/managed-by": "Sawhorse", "app.kubernetes.io/version": release.Version} {
				if labels[key] != want {
					t.Errorf("%s: %s %v: label %s is %v", release.Version, object["kind"], at(object, "metadata", "name"), key, labels[key])
				}
			}
		}
	}
}

// onlyDeployment decodes the only Deployment of a chart's objects, which is the last one: its pods need the others.
func onlyDeployment(t *testing.T, objects []plan.Object) (found appsv1.Deployment) {
	t.Helper()
	for i, object := range objects {
		if is := object["kind"] == "Deployment"; is != (i == len(objects)-1) {
			t.Fatalf("object %d of %d is a %s", i, len(objects), object["kind"])
		}
	}
	if len(objects) < 8 {
		t.Fatalf("%d objects", len(objects))
	}
	text, err := yaml.Marshal(objects[len(objects)-1])
	if err == nil {
		err = yaml.UnmarshalStrict(text, &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// variables returns the plain variables of the controller's container.
func variables(d appsv1.Deployment) map[string]string {
	all := map[string]string{}
	for _, variable := range d.Spec.Template.Spec.Containers[0].Env {
		all[variable.Name] = variable.Value
	}
	return all
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
	variables := variables(d)
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

// The chart of every version has the values that the plan sets: Helm ignores a value that a chart does not know.
func TestEveryVersionKnowsTheValues(t *testing.T) {
	for _, release := range karpenter.All() {
		known, err := release.Values()
		if err != nil {
			t.Fatal(err)
		}
		values := rendered(t, release, facts(release.Kubernetes.Newest)).Controller.Release.Values
		if unknown := unknownTo(known, values, ""); len(unknown) > 0 || known["replicas"] == nil {
			t.Errorf("%s: the chart does not have %v", release.Version, unknown)
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
	p := rendered(t, karpenter.Default(), facts("1.35"))
	p.Controller.Release.Version = "1.9.0"
	err := charts.Add(&p, facts("1.35"))
	if err == nil || !strings.Contains(err.Error(), `karpenter "1.9.0" is no version that Sawhorse has; it has 1.10.0, `) {
		t.Errorf("got %v", err)
	}
}
