package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// dice draws a rack's parameters: what its writer may want to reach, in all of the JSON of the parameters, among values
// that are fine.
type dice struct {
	*rand.Rand
	// chart has the default values of the charts of all versions.
	chart map[string]any
	// fields are the fields of NodePools and EC2NodeClasses of all versions by their paths in karpenter_config, each with a
	// value of its kind.
	fields map[string]any
}

func newDice(seed uint64) dice {
	d := dice{rand.New(rand.NewPCG(seed, seed)), map[string]any{}, map[string]any{}}
	for _, release := range karpenter.All() {
		values, err := release.Values()
		if err != nil {
			panic(err)
		}
		overlay(d.chart, values)
		definitions, err := release.CRDs()
		if err != nil {
			panic(err)
		}
		for name, section := range map[string]string{"nodepools.karpenter.sh": "nodePool", "ec2nodeclasses.karpenter.k8s.aws": "ec2NodeClass"} {
			var definition apiextensionsv1.CustomResourceDefinition
			if err := yaml.Unmarshal(definitions[name], &definition); err != nil {
				panic(err)
			}
			collect(d.fields, section, definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
		}
	}
	maps.Copy(d.fields, fine)
	return d
}

// collect adds the fields of a schema. A list stands for itself: its elements are drawn.
func collect(fields map[string]any, path string, schema apiextensionsv1.JSONSchemaProps) {
	for name, field := range schema.Properties {
		at := path + "." + name
		switch field.Type {
		case "object":
			fields[at] = map[string]any{}
			collect(fields, at, field)
		case "array":
			fields[at] = []any{}
		case "boolean":
			fields[at] = true
		case "integer":
			fields[at] = 1
		default:
			fields[at] = "x"
		}
	}
}

func overlay(all, values map[string]any) {
	for name, value := range values {
		into, object := all[name].(map[string]any)
		if inner, is := value.(map[string]any); is && object {
			overlay(into, inner)
		} else {
			all[name] = value
		}
	}
}

// chance is true once in n times.
func (d dice) chance(n int) bool { return d.IntN(n) == 0 }

func one[T any](d dice, of []T) T { return of[d.IntN(len(of))] }

const evil = "evil.example.com"

// A proxy of the deployment.
const proxy = "http://proxy.example.com:3128"

// hostile are values that would reach beyond the rack's nodes, if the place that they are drawn for took them.
var hostile = decoded(`[
	"` + evil + `/x", "arn:aws:iam::123456789012:role/other", "{{ .Values }}", "a\"\nhostPID: true", "{hostPID: true}", "", 0, -1, 1.5, true,
	null, [], {}, [null], [[]], ["` + evil + `"], {"a": {"b": null}}, {"name": "` + evil + `"}, [{"name": "` + evil + `"}],
	[{"name": "AWS_CONTAINER_CREDENTIALS_FULL_URI", "value": "https://` + evil + `"}],
	[{"name": "AWS_ENDPOINT_URL_STS", "value": "https://` + evil + `"}], [{"name": "HTTPS_PROXY", "value": "http://` + evil + `"}],
	[{"name": "HTTP_PROXY", "value": "` + proxy + `"}], [{"name": "NO_PROXY", "value": ".svc,` + evil + `"}],
	[{"name": "GOGC", "value": "$(SECRET)"}], [{"name": "GOGC", "valueFrom": {"secretKeyRef": {"name": "any", "key": "x"}}}],
	[{"secretRef": {"name": "any"}}], [{"name": "x", "hostPath": {"path": "/"}}], [{"name": "x", "mountPath": "/"}],
	[{"name": "x", "image": "` + evil + `/x", "command": ["sh"]}], {"runAsUser": 0}, {"type": "Unconfined"},
	{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}, {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/other"},
	{"helm.sh/hook": "pre-install"}, {"sidecar.istio.io/inject": "true"}, {"k8s-app": "kube-dns"}, {"app.kubernetes.io/name": "other"},
	{"sawhorse.dev/rack": "other"}, {"basicAuth": {"username": {"name": "any", "key": "x"}}}, {"proxyUrl": "http://` + evil + `"},
	[{"targetLabel": "__address__", "replacement": "` + evil + `"}], {"nameservers": ["192.0.2.1"]},
	[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], {"repository": "` + evil + `/x", "tag": "1", "digest": ""},
	{"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "labelSelector": {}}]}},
	[{"tags": {"*": "*"}}], [{"id": "subnet-other"}], [{"id": "sg-other"}], {"group": "x", "kind": "EC2NodeClass", "name": "other"}
]`)

// good are values of the chart that the parameter takes, by path. For others, and for single values, the chart's will do.
var good = map[string][]any{
	"additionalAnnotations": decoded(`[{"example.com/owner": "web"}, {"note": "any text: {{ x }} \"'# &a *b"}]`),
	"affinity": decoded(`[{"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
		{"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}]}}, {"podAffinity": {}}]`),
	"controller.env": decoded(`[[{"name": "GOMEMLIMIT", "value": "900MiB"}], [{"name": "GOGC", "value": "off"}],
		[{"name": "HTTPS_PROXY", "value": "` + proxy + `"}, {"name": "NO_PROXY", "value": "10.0.0.0/8,.svc"}]]`),
	"controller.resources":              decoded(`[{"limits": {"memory": "1Gi"}}, {"requests": {"cpu": 2, "memory": "2Gi"}}]`),
	"dnsPolicy":                         decoded(`["Default", "ClusterFirstWithHostNet"]`),
	"imagePullSecrets":                  decoded(`[[{"name": "registry"}]]`),
	"podAnnotations":                    decoded(`[{"prometheus.io/scrape": "true"}]`),
	"podLabels":                         decoded(`[{"team": "web"}]`),
	"serviceMonitor.endpointConfig":     decoded(`[{"interval": "15s"}]`),
	"serviceMonitor.relabelings":        decoded(`[[{"action": "labelmap", "regex": "(.+)", "replacement": "pod_$1"}]]`),
	"serviceMonitor.metricRelabelings":  decoded(`[[{"action": "drop", "sourceLabels": ["__name__"], "regex": "go_.*"}]]`),
	"settings.featureGates.nodeOverlay": decoded(`[true]`),
	"strategy":                          decoded(`[{"type": "Recreate", "rollingUpdate": null}]`),
	"tolerations":                       decoded(`[[{"operator": "Exists"}], []]`),
	"topologySpreadConstraints":         decoded(`[[]]`),
}

func decoded(text string) (values []any) {
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		panic(text + err.Error())
	}
	return values
}

// rack draws a rack's parameters.
func (d dice) rack() map[string]string {
	texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_version": one(d, karpenter.Versions())}
	for _, p := range params.Table {
		_, given := texts[p.Name]
		switch {
		case given:
		case p.Type != "json" && d.chance(40):
			texts[p.Name] = p.Example
		case p.Type != "json" && d.chance(100):
			texts[p.Name] = fmt.Sprint(one(d, hostile))
		}
	}
	many := d.chance(3) // of the others, some have nothing hostile
	texts["karpenter_controller_config"] = d.text(d.controller(many))
	if d.chance(2) {
		texts["karpenter_config"] = d.text(d.override(many))
	}
	if d.chance(4) {
		texts["additional_karpenter_nodepools_config"] = d.text(d.pools(many))
	}
	return texts
}

func (d dice) text(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	if d.chance(500) {
		return string(text[:d.IntN(len(text))])
	}
	return string(text)
}

// controller draws values of the chart, and names that no chart has.
func (d dice) controller(many bool) map[string]any {
	config := map[string]any{}
	for range 1 + d.IntN(4) {
		var path []string
		values := d.chart
		for {
			name := one(d, slices.Sorted(maps.Keys(values)))
			path = append(path, name)
			inner, _ := values[name].(map[string]any)
			if judged, whole := params.FindChartValue(path); len(inner) == 0 || whole || many && d.chance(10) {
				if judged.Refused == "" || many && d.chance(4) {
					set(config, path, d.chartValue(path, values[name], many))
				}
				break
			}
			values = inner
		}
	}
	if many && d.chance(10) {
		set(config, []string{one(d, []string{"env", "controller.env", "extraContainers", "global"})}, one(d, hostile))
	}
	return config
}

func (d dice) chartValue(path []string, standing any, many bool) any {
	if many && d.chance(2) {
		return one(d, hostile)
	}
	if values := good[strings.Join(path, ".")]; values != nil {
		return one(d, values)
	}
	if is, boolean := standing.(bool); boolean && d.chance(2) {
		return !is
	}
	return standing
}

// set sets a value by its path, if nothing on the way is another kind of value.
func set(values map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		if values[name] == nil {
			values[name] = map[string]any{}
		}
		inner, is := values[name].(map[string]any)
		if !is {
			return
		}
		values = inner
	}
	values[path[len(path)-1]] = copied(value)
}

// copied returns a value that later ones can be set into.
func copied(value any) any {
	switch v := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, inner := range v {
			all[name] = copied(inner)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, inner := range v {
			all[i] = copied(inner)
		}
		return all
	}
	return value
}

// fine are values of karpenter_config that are good as they are.
var fine = map[string]any{
	"nodePool.weight": 10, "nodePool.limits.cpu": "50", "nodePool.disruption.consolidateAfter": "1m",
	"nodePool.template.spec.expireAfter": "24h", "nodePool.template.metadata.labels.team": "web", "metadata.name": "x",
	"nodePool.template.spec.terminationGracePeriod": "1h", "ec2NodeClass.tags.team": "web", "ec2NodeClass.userData": "#!/bin/sh\necho",
	"ec2NodeClass.metadataOptions.httpPutResponseHopLimit": 2, "ec2NodeClass.kubelet.maxPods": 50,
	"ec2NodeClass.instanceStorePolicy": "RAID0",
}

// override draws sections of the workload pool's objects.
func (d dice) override(many bool) map[string]any {
	config := map[string]any{}
	for range 1 + d.IntN(3) {
		field := one(d, slices.Sorted(maps.Keys(fine)))
		if many {
			field = one(d, slices.Sorted(maps.Keys(d.fields)))
		}
		value := d.fields[field]
		if many && d.chance(2) {
			value = one(d, hostile)
		}
		if many || field != "metadata.name" {
			set(config, strings.Split(field, "."), value)
		}
	}
	return config
}

// pools draws more pools.
func (d dice) pools(many bool) any {
	pools := []any{}
	for i := range d.IntN(3) {
		pool := map[string]any{"name": fmt.Sprint("pool", i)}
		some := map[string]any{"labels": "a=b", "dedicated": true, "disk": 30, "taints": "a=b:NoSchedule", "weight": 5}
		for range d.IntN(3) {
			field := one(d, slices.Sorted(maps.Keys(some)))
			pool[field] = some[field]
		}
		if many && d.chance(2) {
			pool[one(d, []string{"role", "labels", "name", "taints", "subnetSelectorTerms", "instance_families"})] = one(d, hostile)
		}
		pools = append(pools, pool)
	}
	return pools
}
