package nodes

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// wrong is a value that is refused at a path, in words.
type wrong struct{ value, path, words string }

// wrongConfigs are refused wherever a config may stand.
var wrongConfigs = []wrong{
	{`"nodePool":null`, "nodePool", "null"},
	{`"nodePool":[]`, "nodePool", "allowed is an object"},
	{`"ec2NodeClass":"x"`, "ec2NodeClass", "allowed is an object"},
	{`"ec2NodeClass":{"role":"x"}`, "ec2NodeClass.role", "protected"},
	{`"ec2NodeClass":{"instanceProfile":null}`, "ec2NodeClass.instanceProfile", "protected"},
	{`"ec2NodeClass":{"subnetSelectorTerms":[{"id":"subnet-1"}]}`, "ec2NodeClass.subnetSelectorTerms", "subnet_ids"},
	{`"ec2NodeClass":{"securityGroupSelectorTerms":[]}`, "ec2NodeClass.securityGroupSelectorTerms", "security_group_ids"},
	{`"ec2NodeClass":{"tags":{"NAME":"x"}}`, "ec2NodeClass.tags.NAME", "protected"},
	{`"ec2NodeClass":{"tags":{"rack":"x"}}`, "ec2NodeClass.tags.rack", "protected"},
	{`"ec2NodeClass":{"tags":{"aws:x":"y"}}`, `ec2NodeClass.tags["aws:x"]`, "AWS's own"},
	{`"ec2NodeClass":{"userDate":"x"}`, "ec2NodeClass.userDate", "did you mean userData?"},
	{`"ec2NodeClass":{"amiFamily":"Windows2022"}`, "ec2NodeClass.amiFamily", "Linux"},
	{`"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023"}]}`, "ec2NodeClass.amiSelectorTerms[0].alias", "family@version"},
	{`"ec2NodeClass":{"amiSelectorTerms":[{"alias":"windows2022@latest"}]}`, "ec2NodeClass.amiSelectorTerms[0].alias", "Linux"},
	{`"ec2NodeClass":{"amiSelectorTerms":[{"alias":"bottlerocket@v20260828"}]}`, "ec2NodeClass.amiSelectorTerms[0].alias", "no such version"},
	{`"ec2NodeClass":{"metadataOptions":{"httpTokens":"never"}}`, "ec2NodeClass.metadataOptions.httpTokens", "required"},
	{`"ec2NodeClass":{"blockDeviceMappings":[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"20Gi","snapshotID":"snap-1"}}]}`,
		"ec2NodeClass.blockDeviceMappings[0].ebs.snapshotID", "protected"},
	{`"ec2NodeClass":{"kubelet":{"maxPods":-1}}`, "ec2NodeClass.kubelet.maxPods", "0"},
	{`"nodePool":{"template":{"spec":{"nodeClassRef":{"name":"x"}}}}`, "nodePool.template.spec.nodeClassRef", "protected"},
	{`"nodePool":{"template":{"metadata":{"labels":{"convox.io/nodepool":"x"}}}}`,
		`nodePool.template.metadata.labels["convox.io/nodepool"]`, "protected"},
	{`"nodePool":{"template":{"metadata":{"labels":{"convox.io/system-node":"x"}}}}`,
		`nodePool.template.metadata.labels["convox.io/system-node"]`, "protected"},
	{`"nodePool":{"template":{"metadata":{"labels":{"a b":"x"}}}}`, `nodePool.template.metadata.labels["a b"]`, "refused by Karpenter"},
	{`"nodePool":{"template":{"spec":{"requirements":[]}}}`, "nodePool.template.spec.requirements", "is empty"},
	{`"nodePool":{"template":{"spec":{"expireAfter":"0h"}}}`, "nodePool.template.spec.expireAfter", "delete every"},
	{`"nodePool":{"template":{"spec":{"expireAfter":"1d"}}}`, "nodePool.template.spec.expireAfter", "1d"},
	{`"nodePool":{"template":{"spec":{"requirements":[{"key":"convox.io/nodepool","operator":"In","values":["x"]}]}}}`,
		"nodePool.template.spec.requirements[0].key", "reserved"},
	{`"nodePool":{"template":{"spec":{"requirements":[{"key":"kubernetes.io/arch","operator":"Is","values":["amd64"]}]}}}`,
		"nodePool.template.spec.requirements[0].operator", "In"},
	{`"nodePool":{"disruption":{"budgets":[{"nodes":"101%"}]}}`, "nodePool.disruption.budgets[0].nodes", "101%"},
	{`"nodePool":{"disruption":{"budgets":[{"nodes":"1","schedule":"x","duration":"1h"}]}}`,
		"nodePool.disruption.budgets[0].schedule", "x"},
	{`"nodePool":{"disruption":{"consolidationPolicy":"Always"}}`, "nodePool.disruption.consolidationPolicy", "WhenEmpty"},
	{`"nodePool":{"disruptoin":{}}`, "nodePool.disruptoin", "did you mean disruption?"},
}

// wrongParameters are refused in one parameter.
var wrongParameters = map[string][]wrong{
	params.ParamDefaults: {
		{`{"nodePool":{"weight":3}}`, "nodePool.weight", "protected"},
		{`{"nodePool":{"limits":{"cpu":"3"}}}`, "nodePool.limits", "protected"},
		{`{"nodePool":{"replicas":3}}`, "nodePool.replicas", "protected"},
		{`{"nodepool":{}}`, "nodepool", "did you mean nodePool?"},
		{`[]`, "", "a JSON object"},
	},
	params.ParamBuildConfig: {
		{`{"nodePool":{"template":{"metadata":{"labels":{"convox-build":"x"}}}}}`, "nodePool.template.metadata.labels.convox-build", "protected"},
		{`{"nodePool":{"template":{"spec":{"taints":[{"key":"dedicated","effect":"NoSchedule"}]}}}}`,
			"nodePool.template.spec.taints[0].key", "reserved"},
		{`{"kind":"NodePool","spec":{}}`, "", "a whole manifest"},
	},
	params.ParamAdditional: {
		{`{"name":"a"}`, "", "a JSON array"},
		{`["a"]`, "[0]", "allowed is an object"},
		{`[{"name":"a"},{"name":"a"}]`, "[1].name", "a"},
		{`[{"name":"workload"}]`, "[0].name", "workload"},
		{`[{"name":"A"}]`, "[0].name", "a-z"},
		{`[{"nodePool":{}}]`, "[0].name", "name"},
		{`[{"name":"a","nodePool":{"weight":101}}]`, "[0].nodePool.weight", "100"},
		{`[{"name":"a","nodePool":{"replicas":2}}]`, "[0].nodePool.replicas", "StaticCapacity is off"},
		{`[{"name":"a","volume_iops":10001}]`, "[0].volume_iops", "allowed are 10000"},
		{`[{"name":"a","volume_iops":2999}]`, "[0].volume_iops", "3000"},
		{`[{"name":"a","volume_throughput":751}]`, "[0].volume_throughput", "allowed are 750"},
		{`[{"name":"a","volume_throughput":124}]`, "[0].volume_throughput", "125"},
		{`[{"name":"a","volume_type":"io1","volume_iops":3000}]`, "[0].volume_iops", "gp3 only"},
		{`[{"name":"a","volume_type":"st1"}]`, "[0].volume_type", "gp3"},
		{`[{"name":"a","ami_id":"ami-1"}]`, "[0].ami_id", "allowed is the ID"},
		{`[{"name":"a","os":"windows"}]`, "[0].os", "allowed is al2023"},
		{`[{"name":"a","tags":"Name=x"}]`, "[0].tags", "Name"},
		{`[{"name":"a","labels":"convox.io/nodepool=x"}]`, "[0].labels", "reserved"},
		{`[{"name":"a","taints":"a=b:Never"}]`, "[0].taints", "NoSchedule"},
		{`[{"name":"a","weight":101}]`, "[0].weight", "100"},
		{`[{"name":"a","arch":"x86"}]`, "[0].arch", "amd64"},
		{`[{"name":"a","node_expiry":"0h"}]`, "[0].node_expiry", "delete every"},
		{`[{"name":"a","amiid":"ami-0123456789abcdef0"}]`, "[0].amiid", "did you mean ami_id?"},
		{`[{"name":"a"},{"name":"b","ec2NodeClass":{"role":"x"}}]`, "[1].ec2NodeClass.role", "protected"},
	},
	params.ParamAlias: {
		{"al2@latest", "", "al2023"},
		{"al2023", "", "al2023@v"},
		{"al2023@20260828", "", "al2023@v"},
		{"al2023@v20260231", "", "no day of the calendar"},
		{"al2023@latest,al2023@v20260828", "", "two aliases"},
		{"al2023@latest-0d", "", "al2023@v"},
		{"al2023@latest-91d", "", "al2023@v"},
		{"bottlerocket@1.44.0", "", "bottlerocket@v"},
	},
}

// Karpenter's checks log a value that is not known among others. Without a logger, that is a stack on the command's stderr.
func TestChecksLogNothing(t *testing.T) {
	log.SetLogger(funcr.New(func(prefix, line string) { t.Error(prefix, line) }, funcr.Options{}))
	parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true",
		params.ParamOverride: capacityOf("spot", "cheap")}})
	if problems := Compile(parsed.Config, plan.Facts{}).Check(); len(problems) == 0 {
		t.Error("the capacity type cheap was accepted")
	}
}

// capacityOf returns a config with these capacity types.
func capacityOf(types ...string) string {
	return `{"nodePool":{"template":{"spec":{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["` +
		strings.Join(types, `","`) + `"]}]}}}}`
}

// A wrong value is reported under its parameter, entry and path, in each place where it may stand.
func TestWrongValues(t *testing.T) {
	cases := 0
	refused := func(parameter, value, path, words string) {
		t.Helper()
		cases++
		parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true", parameter: value}})
		problems := append(parsed.Problems, Compile(parsed.Config, plan.Facts{}).Check()...)
		if len(problems) == 0 || problems[0].Parameter != parameter || problems[0].Path != path ||
			!strings.Contains(problems[0].Message, words) {
			t.Errorf("%s=%s: %v, want %s: %s", parameter, value, problems, path, words)
		}
	}
	for _, w := range wrongConfigs {
		for _, parameter := range []string{params.ParamDefaults, params.ParamOverride, params.ParamBuildConfig} {
			refused(parameter, "{"+w.value+"}", w.path, w.words)
		}
		refused(params.ParamAdditional, `[{"name":"a",`+w.value+`}]`, "[0]."+w.path, w.words)
	}
	for parameter, all := range wrongParameters {
		for _, w := range all {
			refused(parameter, w.value, w.path, w.words)
		}
	}
	if cases < 150 {
		t.Errorf("%d cases", cases)
	}
}

// From Karpenter 1.14.3 on, the reasons of a budget are a set, in which the API server takes nothing twice.
func TestAReasonTwice(t *testing.T) {
	for version, refused := range map[string]bool{"1.10.0": false, "1.14.3": true} {
		parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_version": version,
			"karpenter_config": `{"nodePool":{"disruption":{"budgets":[{"nodes":"1","reasons":["Drifted","Drifted"]}]}}}`,
		}})
		found := Compile(parsed.Config, plan.Facts{}).Check()
		if len(parsed.Problems) > 0 || len(found) > 0 != refused {
			t.Errorf("%s: %v, %v", version, parsed.Problems, found)
		}
		for _, p := range found {
			if p.Path != "nodePool.disruption.budgets[0].reasons[1]" || !strings.Contains(p.Message, "Drifted") {
				t.Errorf("%s: %+v", version, p)
			}
		}
	}
}
