package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/charts"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// drawnVariable is the environment variable with the number of racks that are drawn. .ci/run sets it.
const drawnVariable = "SAWHORSE_DRAWN_RACKS"

// Whatever a rack's parameters are, the objects made from them reach the rack's nodes and nothing else: the controller is
// one container of the version's image under its service account, with the chart's rights, volumes and variables and few
// others, and the nodes have the rack's role, subnets and security groups.
func TestWhatAWriterOfParametersReaches(t *testing.T) {
	racks := 2_500
	if testing.Short() {
		racks = 300
	}
	if more := os.Getenv(drawnVariable); more != "" {
		var err error
		if racks, err = strconv.Atoi(more); err != nil {
			t.Fatalf("%s: %v", drawnVariable, err)
		}
	}
	d := newDice(1)
	accepted, refused := map[string]int{}, 0
	charted := map[string]bool{}
	for range racks {
		texts := d.rack()
		parsed := params.Parse(params.Input{Rack: "demo", Params: texts})
		v := validation.Validate(validation.Input{Parsed: parsed, Facts: factsOfDrawn(parsed.Config.ClusterName)})
		if len(v.Problems) > 0 {
			refused++
			continue
		}
		version := v.Plan.Controller.Release.Version
		accepted[version]++
		if reached := nodesReach(v.Plan); reached != "" {
			t.Errorf("%s\n%v", reached, texts)
		}
		key, err := json.Marshal(v.Plan.Controller.Release.Values)
		if err != nil {
			t.Fatal(err)
		}
		if charted[version+string(key)] {
			continue // the same objects as before
		}
		charted[version+string(key)] = true
		if reached := controllerReaches(t, v.Plan); reached != "" {
			t.Errorf("%s\n%s: %s", reached, version, texts[params.ParamController])
		}
		if t.Failed() && len(charted) > 10*len(karpenter.Versions()) {
			t.Fatal("and others")
		}
	}
	t.Logf("accepted %v, refused %d, different charts %d", accepted, refused, len(charted))
	if sum := racks - refused; len(accepted) != len(karpenter.Versions()) || sum < racks/10 || refused < racks/10 || len(charted) < racks/20 {
		t.Errorf("of %d racks %v were accepted, with %d different charts: the draw shows nothing", racks, accepted, len(charted))
	}
}

// factsOfDrawn returns what is known of the cluster of a rack whose parameters were drawn.
func factsOfDrawn(cluster string) plan.Facts {
	return plan.Facts{
		Cluster: &plan.ClusterFacts{Status: "ACTIVE", Version: "1.35",
			Cluster: plan.Cluster{Name: cluster, Partition: "aws", Account: "123456789012", Region: "eu-central-1", SecurityGroup: "sg-cluster"}},
		PodIdentity: true, Subnets: []plan.Tagged{{ID: "subnet-a"}}, SecurityGroups: []plan.Tagged{{ID: "sg-cluster"}},
		NodeGroups: []plan.NodeGroup{{Name: "system", CapacityType: "ON_DEMAND", InstanceTypes: []string{"m6i.large"}}},
		Deployment: plan.Deployment{Proxies: []string{proxy, "10.0.0.0/8", ".svc"}},
	}
}

// nodesReach returns what the pools' objects reach beyond the rack's nodes.
func nodesReach(p plan.Plan) string {
	discovery := map[string]any{"tags": map[string]any{"karpenter.sh/discovery": p.Cluster.Name}}
	for _, object := range p.NodePools.Objects {
		name := object["metadata"].(map[string]any)["name"]
		spec := object["spec"].(map[string]any)
		if object["kind"] == "NodePool" {
			ref := at(spec, "template", "spec", "nodeClassRef")
			if want := map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}; !same(ref, want) {
				return fmt.Sprintf("NodePool %s: %v", name, ref)
			}
			continue
		}
		role := ownership.NodeRole("demo")
		if name == "build" && spec["role"] == ownership.BuildNodeRole("demo") { // build_node_minimal_role_enabled
			role = ownership.BuildNodeRole("demo")
		}
		for field, want := range map[string]any{
			"role": role, "instanceProfile": nil,
			"subnetSelectorTerms": []any{discovery}, "securityGroupSelectorTerms": []any{discovery},
		} {
			if !same(spec[field], want) {
				return fmt.Sprintf("EC2NodeClass %s: %s is %v", name, field, spec[field])
			}
		}
		terms, _ := spec["amiSelectorTerms"].([]any)
		for _, term := range terms {
			own := at(term, "owner") == "self" && at(term, "tags", ownership.TagNodes) != nil
			if at(term, "alias") == nil && at(term, "owner") != "amazon" && !own || at(term, "id") != nil || at(term, "ssmParameter") != nil {
				return fmt.Sprintf("EC2NodeClass %s: images of %v", name, term)
			}
		}
		if tags, _ := spec["tags"].(map[string]any); tags["Rack"] != "demo" || tags["Name"] != fmt.Sprintf("demo/karpenter/%s", name) {
			return fmt.Sprintf("EC2NodeClass %s: tags %v", name, tags)
		}
	}
	return ""
}

func same(a, b any) bool {
	one, err := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(one) == string(other)
}

func at(value any, path ...string) any {
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// plain are the objects of a version's release without karpenter_controller_config, by kind and name.
var plain = map[string]map[string]plan.Object{}

// byName renders a plan's controller, with the ServiceMonitor if the values have it.
func byName(t *testing.T, p plan.Plan) map[string]plan.Object {
	t.Helper()
	p.Controller.Release.Values = stored(t, p.Controller.Release.Values)
	p.Controller.Release.Replicas = 2
	if err := charts.Add(&p, plan.Facts{APIs: []string{plan.MonitorAPI}}); err != nil {
		t.Errorf("%s: %v", p.Controller.Release.Version, err)
		return nil
	}
	all := map[string]plan.Object{}
	for _, object := range p.Controller.Release.Objects {
		all[fmt.Sprint(object["kind"], "/", at(object, "metadata", "namespace"), "/", at(object, "metadata", "name"))] = object
	}
	if len(all) != len(p.Controller.Release.Objects) {
		t.Errorf("%s: two objects of one name", p.Controller.Release.Version)
	}
	return all
}

// controllerReaches returns what the controller's objects reach beyond those of the chart.
func controllerReaches(t *testing.T, p plan.Plan) string {
	t.Helper()
	version := p.Controller.Release.Version
	if plain[version] == nil {
		made := validation.Validate(validation.Input{Facts: factsOfDrawn("demo"), Parsed: params.Parse(params.Input{
			Rack: "demo", Params: map[string]string{
				"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_version": version,
				"karpenter_controller_config": `{"serviceMonitor":{"enabled":true}}`,
			},
		})})
		if len(made.Problems) > 0 {
			t.Fatal(made.Problems)
		}
		plain[version] = byName(t, made.Plan)
	}
	objects := byName(t, p)
	for name, object := range objects {
		usual := plain[version][name]
		if usual == nil {
			return name + " is no object of the chart"
		}
		reached := objectReaches(object, usual)
		if object["kind"] == "Deployment" {
			reached = podsReach(typedDeployment(object), expected(t, p, usual))
		}
		if reached != "" {
			return name + ": " + reached
		}
	}
	for name := range plain[version] {
		if objects[name] == nil && !strings.HasPrefix(name, "ServiceMonitor/") {
			return "there is no " + name
		}
	}
	return ""
}

// expected returns the Deployment of a plan without karpenter_controller_config.
func expected(t *testing.T, p plan.Plan, usual plan.Object) appsv1.Deployment {
	t.Helper()
	release, err := karpenter.Find(p.Controller.Release.Version)
	if err != nil {
		t.Fatal(err)
	}
	made := typedDeployment(usual)
	container := &made.Spec.Template.Spec.Containers[0]
	repository, mirrored := at(p.Controller.Release.Values, "controller", "image", "repository").(string)
	if !mirrored {
		repository = ownership.ControllerImage
	} else if release.Digest == "" && repository != ownership.ControllerImage { // a digest is the same image everywhere
		t.Errorf("%s without a digest from %s", release.Version, repository)
	}
	container.Image = repository + ":" + release.Version
	if release.Digest != "" {
		container.Image += "@" + release.Digest
	}
	for i := range container.Env {
		if container.Env[i].Name == "CLUSTER_NAME" {
			container.Env[i].Value = p.Cluster.Name
		}
	}
	return made
}

func objectReaches(object, usual plan.Object) string {
	if !same(at(object, "metadata", "labels"), at(usual, "metadata", "labels")) && object["kind"] != "ServiceMonitor" {
		return fmt.Sprintf("labels %v", at(object, "metadata", "labels"))
	}
	before, _ := at(usual, "metadata", "annotations").(map[string]any)
	after, _ := at(object, "metadata", "annotations").(map[string]any)
	if foreign := added(after, before); foreign != "" {
		return "annotation " + foreign
	}
	switch object["kind"] {
	case "Deployment": // podsReach
	case "ServiceMonitor":
		return monitorReaches(object)
	case "PodDisruptionBudget", "Service":
		if !same(at(object, "spec", "selector"), at(usual, "spec", "selector")) || !same(at(object, "spec", "type"), at(usual, "spec", "type")) {
			return fmt.Sprint(object["spec"])
		}
	case "ClusterRole", "Role": // the gate podDeletionCostManagement adds patch to the rules of pods
		rules := strings.ReplaceAll(fmt.Sprint(object["rules"]), "[delete patch]", "[delete]")
		if rules != strings.ReplaceAll(fmt.Sprint(usual["rules"]), "[delete patch]", "[delete]") {
			return rules
		}
	default:
		for field := range object {
			if field != "metadata" && !same(object[field], usual[field]) {
				return fmt.Sprint(field, " is ", object[field])
			}
		}
	}
	return ""
}

// selecting are labels by which Services of kube-system choose pods.
var selecting = []string{"k8s-app", "app"}

// added returns a key that is new and belongs to somebody, or that has another value.
func added(after, before map[string]any, owned ...string) string {
	for key, value := range after {
		if was, is := before[key]; is && was == value {
			continue
		} else if is || slices.Contains(owned, key) {
			return fmt.Sprint(key, "=", value)
		}
		for _, owner := range []string{"kubernetes.io", "k8s", "karpenter", "sawhorse", "amazonaws", "helm", "istio"} {
			if domain, _, has := strings.Cut(key, "/"); has && strings.Contains(domain, owner) {
				return fmt.Sprint(key, "=", value)
			}
		}
	}
	for key := range before {
		if _, is := after[key]; !is {
			return key + " is gone"
		}
	}
	return ""
}

func typedDeployment(object plan.Object) (deployment appsv1.Deployment) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &deployment); err != nil {
		panic(err)
	}
	return deployment
}

// podsReach compares the controller's pods with those without karpenter_controller_config, in all that the parameter does
// not leave open.
func podsReach(deployment, usual appsv1.Deployment) string {
	pod, want := deployment.Spec.Template, usual.Spec.Template
	asAny := func(texts map[string]string) map[string]any {
		all := map[string]any{}
		for key, value := range texts {
			all[key] = value
		}
		return all
	}
	labels, annotations := added(asAny(pod.Labels), asAny(want.Labels), selecting...), added(asAny(pod.Annotations), asAny(want.Annotations))
	if foreign := labels + annotations; foreign != "" {
		return "pods: " + foreign
	}
	if !reflect.DeepEqual(deployment.Spec.Selector, usual.Spec.Selector) || len(pod.Spec.Containers) != 1 {
		return fmt.Sprint("pods: ", deployment.Spec.Selector, pod.Spec.Containers)
	}
	is, should := pod.Spec.Containers[0], want.Spec.Containers[0]
	if foreign := variablesReach(is.Env, should.Env); foreign != "" {
		return foreign
	}
	// What the parameter leaves open.
	should.Env, should.Resources, should.Ports = is.Env, is.Resources, is.Ports
	should.Resources.Claims = nil
	want.Spec.Containers = []corev1.Container{should}
	want.Spec.Affinity, want.Spec.Tolerations, want.Spec.TopologySpreadConstraints = pod.Spec.Affinity, pod.Spec.Tolerations,
		pod.Spec.TopologySpreadConstraints
	want.Spec.PriorityClassName, want.Spec.TerminationGracePeriodSeconds = pod.Spec.PriorityClassName, pod.Spec.TerminationGracePeriodSeconds
	want.Spec.DNSPolicy, want.Spec.HostNetwork = pod.Spec.DNSPolicy, pod.Spec.HostNetwork
	want.Spec.ImagePullSecrets = pod.Spec.ImagePullSecrets
	if !same(pod.Spec, want.Spec) {
		return fmt.Sprintf("pods: %+v\nwant %+v", pod.Spec, want.Spec)
	}
	if apart := pod.Spec.Affinity; apart != nil && apart.PodAntiAffinity != nil {
		for _, term := range apart.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.LabelSelector == nil || term.LabelSelector.MatchLabels["app.kubernetes.io/name"] != "karpenter" {
				return fmt.Sprintf("pods: affinity %+v", term)
			}
		}
	}
	return ""
}

// variablesReach returns a variable that neither the chart nor the parameter may set.
func variablesReach(env, usual []corev1.EnvVar) string {
	own := map[string]corev1.EnvVar{}
	for _, variable := range usual {
		own[variable.Name] = variable
	}
	settings := []string{ // those that the chart sets only with a value
		"ENABLE_ZONAL_SHIFT", "EKS_CONTROL_PLANE", "ISOLATED_VPC", "DISABLE_CLUSTER_STATE_OBSERVABILITY", "DISABLE_DRY_RUN", "LEGACY_NODE_REPAIR",
		"IGNORE_DRA_REQUESTS", "VM_MEMORY_OVERHEAD_PERCENT",
	}
	open := map[string][]string{
		"GOMEMLIMIT": {"900MiB"}, "GOGC": {"off"}, "HTTPS_PROXY": {proxy}, "NO_PROXY": {"10.0.0.0/8,.svc"},
	}
	fixed := []string{"KUBERNETES_MIN_VERSION", "KARPENTER_SERVICE", "SYSTEM_NAMESPACE", "CLUSTER_NAME", "INTERRUPTION_QUEUE",
		"LOG_OUTPUT_PATHS", "LOG_ERROR_OUTPUT_PATHS", "CPU_REQUESTS", "MEMORY_LIMIT"}
	seen := map[string]bool{}
	for _, variable := range env {
		was, is := own[variable.Name]
		values, may := open[variable.Name]
		switch {
		case seen[variable.Name]:
			return variable.Name + " twice"
		case slices.Contains(fixed, variable.Name) && !reflect.DeepEqual(variable, was),
			is && !reflect.DeepEqual(variable.ValueFrom, was.ValueFrom):
			return fmt.Sprintf("variable %+v", variable)
		case !is && may && !slices.Contains(values, variable.Value), !is && !may && !slices.Contains(settings, variable.Name):
			return fmt.Sprintf("variable %+v", variable)
		case strings.Contains(variable.Value, evil), !is && variable.ValueFrom != nil:
			return fmt.Sprintf("variable %+v", variable)
		}
		seen[variable.Name] = true
	}
	for _, name := range fixed {
		if own[name].Name != "" && !seen[name] {
			return "no variable " + name
		}
	}
	return ""
}

// monitorReaches returns what Prometheus would read or ask besides the controller's metrics.
func monitorReaches(monitor plan.Object) string {
	endpoints, _ := at(monitor, "spec", "endpoints").([]any)
	if len(endpoints) != 1 {
		return fmt.Sprint(endpoints)
	}
	endpoint := endpoints[0].(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(endpoint)) {
		if !slices.Contains([]string{"port", "path", "interval", "relabelings", "metricRelabelings"}, field) {
			return "endpoint " + field
		}
	}
	if endpoint["port"] != "http-metrics" || endpoint["path"] != "/metrics" || strings.Contains(fmt.Sprint(endpoint["relabelings"]), "__") {
		return fmt.Sprint(endpoint)
	}
	return ""
}
