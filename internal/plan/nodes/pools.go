package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// pool is one NodePool with its EC2NodeClass: its settings, and the parameters that they come from.
type pool struct {
	params.Pool
	// from returns the origin of a field, by the field's name in additional_karpenter_nodepools_config.
	from func(field string) origin
	// taint is a taint that Sawhorse sets, or nil.
	taint    *params.Taint
	override params.Override
	idle     bool
	api      *api
	// guessed means that the pool's architecture is a default, because no parameter and no node group defines it.
	guessed bool
}

// pools returns the pools of a rack: workload, build, and the additional ones. Without build nodes, the build pool is there
// to be checked, if it has settings that the workload pool does not have.
func pools(config params.Config, facts plan.Facts) []pool {
	workload := pool{Pool: config.Workload, from: workloadOrigin(config), override: config.Override}
	workload.Name, workload.Arch = ownership.WorkloadPool, plan.Arch(config, facts)
	unseen := len(config.NodeTypes) == 0 && len(facts.OfRole(config, plan.RoleSystem)) == 0
	workload.guessed = unseen && len(config.Workload.Arch) == 0
	if workload.Disk == 0 {
		workload.Disk = config.NodeDisk
	}
	all := []pool{workload}
	if own := config.Build; config.BuildNodes || len(own.Families)+len(own.Sizes)+len(own.Labels) > 0 {
		build := buildPool(config, facts, workload)
		build.guessed = unseen && len(config.BuildNodeTypes) == 0 && len(facts.OfRole(config, plan.RoleBuild)) == 0
		all = append(all, build)
	}
	for i, p := range config.Additional {
		extra := pool{Pool: p, from: func(field string) origin {
			if field == "disk" && p.Disk == 0 {
				return workload.from(field)
			}
			return origin{params.ParamAdditional, params.Join(fmt.Sprintf("[%d]", i), field)}
		}}
		if p.Disk == 0 {
			extra.Disk = workload.Disk
		}
		if p.Dedicated {
			extra.taint = &params.Taint{Key: "dedicated-node", Value: p.Name, Effect: "NoSchedule"}
		}
		all = append(all, extra)
	}
	return all
}

func workloadOrigin(config params.Config) func(string) origin {
	parameters := map[string]string{
		"name": "karpenter_enabled", "disk": "karpenter_node_disk", "consolidation_policy": "karpenter_consolidation_enabled",
		"labels": "karpenter_node_labels", "taints": "karpenter_node_taints", "volume_type": "karpenter_node_volume_type",
	}
	if config.Override.NodePool != nil || config.Override.EC2NodeClass != nil {
		parameters["name"] = params.ParamOverride
	}
	if config.Workload.Disk == 0 {
		parameters["disk"] = "node_disk"
	}
	if len(config.Workload.Arch) == 0 {
		parameters["arch"] = "node_type"
	}
	return func(field string) origin { return origin{parameter: cmp.Or(parameters[field], "karpenter_"+field)} }
}

// buildPool returns the pool for build nodes. It has the workload's expiry, disk and volume type and, if its own are
// not set, the workload's instance families and sizes.
func buildPool(config params.Config, facts plan.Facts, workload pool) pool {
	build := pool{Pool: config.Build, idle: !config.BuildNodes}
	build.Name, build.Arch = ownership.BuildPool, plan.BuildArch(config, facts)
	build.NodeExpiry, build.Disk, build.VolumeType = workload.NodeExpiry, workload.Disk, workload.VolumeType
	build.ConsolidationPolicy = "WhenEmpty"
	build.taint = &params.Taint{Key: "dedicated", Value: "build", Effect: "NoSchedule"}
	inherited := []string{"node_expiry", "disk", "volume_type"}
	if len(build.Families) == 0 {
		build.Families, inherited = workload.Families, append(inherited, "instance_families")
	}
	if len(build.Sizes) == 0 {
		build.Sizes, inherited = workload.Sizes, append(inherited, "instance_sizes")
	}
	parameters := map[string]string{
		"name": "build_node_enabled", "dedicated": "build_node_enabled", "labels": "karpenter_build_node_labels", "arch": "build_node_type",
	}
	if len(config.BuildNodeTypes) == 0 && len(config.NodeTypes) > 0 {
		parameters["arch"] = "node_type"
	}
	build.from = func(field string) origin {
		if slices.Contains(inherited, field) {
			return workload.from(field)
		}
		return origin{parameter: cmp.Or(parameters[field], "karpenter_build_"+field)}
	}
	return build
}

func (p pool) nodePool(config params.Config) *draft {
	d := p.newDraft("karpenter.sh/v1", "NodePool", config.Rack)
	d.idle, d.tolerated, d.guessed = p.idle, p.taint, p.guessed
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		d.set(p.from("labels"), p.Labels[key], "template", "metadata", "labels", key)
	}
	for _, r := range []struct {
		field, key string
		values     []string
	}{
		{"capacity_types", keyCapacity, p.CapacityTypes},
		{"arch", keyArch, p.Arch},
		{"instance_families", keyFamily, p.Families},
		{"instance_sizes", keySize, p.Sizes},
	} {
		if len(r.values) > 0 {
			d.add(p.from(r.field), map[string]any{"key": r.key, "operator": "In", "values": list(r.values)}, "template", "spec", "requirements")
		}
	}
	if p.taint != nil {
		d.add(p.from("dedicated"), taint(*p.taint), "template", "spec", "taints")
	}
	for _, t := range p.Taints {
		d.add(p.from("taints"), taint(t), "template", "spec", "taints")
	}
	d.set(p.from("node_expiry"), p.NodeExpiry, "template", "spec", "expireAfter")
	d.set(p.from("name"), map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": p.Name}, "template", "spec",
		"nodeClassRef")
	d.set(p.from("cpu_limit"), strconv.Itoa(p.CPULimit), "limits", "cpu")
	d.set(p.from("memory_limit_gb"), fmt.Sprintf("%dGi", p.MemoryLimitGB), "limits", "memory")
	d.set(p.from("consolidation_policy"), p.ConsolidationPolicy, "disruption", "consolidationPolicy")
	d.set(p.from("consolidate_after"), p.ConsolidateAfter, "disruption", "consolidateAfter")
	if p.DisruptionBudget != "" {
		d.set(p.from("disruption_budget_nodes"), []any{map[string]any{"nodes": p.DisruptionBudget}}, "disruption", "budgets")
	}
	if p.Weight > 0 {
		d.set(p.from("weight"), int64(p.Weight), "weight")
	}
	var before []requirement
	if p.override.NodePool != nil {
		before = d.readRequirements()
	}
	p.overrideNodePool(d)
	d.block(config)
	if from, known := d.origin([]string{"spec", "template", "spec", "requirements"}); known && from.parameter == params.ParamOverride {
		d.guessed, d.replaced = false, before
	}
	d.set(p.from("name"), p.Name, "template", "metadata", "labels", ownership.LabelNodePool)
	if p.Name == ownership.BuildPool {
		d.set(p.from("name"), "true", "template", "metadata", "labels", ownership.LabelBuild)
	}
	return d
}

func (p pool) nodeClass(config params.Config) *draft {
	d := p.newDraft("karpenter.k8s.aws/v1", "EC2NodeClass", config.Rack)
	d.idle = p.idle
	for _, key := range slices.Sorted(maps.Keys(config.Tags)) {
		d.set(origin{parameter: "tags"}, config.Tags[key], "tags", key)
	}
	discovery := []any{map[string]any{"tags": map[string]any{ownership.TagDiscovery: config.ClusterName}}}
	own := p.from("name")
	d.set(own, []any{map[string]any{"alias": "al2023@latest"}}, "amiSelectorTerms")
	d.set(own, map[string]any{"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": int64(1)}, "metadataOptions")
	p.setDevices(d)
	p.overrideNodeClass(d)
	if _, overridden := p.override.EC2NodeClass["blockDeviceMappings"]; !overridden {
		p.setDevices(d) // again, because the override may set another AMI family
	}
	d.set(own, p.role(config), "role")
	d.set(origin{parameter: "cluster_name"}, discovery, "subnetSelectorTerms")
	d.set(origin{parameter: "cluster_name"}, discovery, "securityGroupSelectorTerms")
	d.set(own, ownership.NodeName(config.Rack, p.Name), "tags", ownership.TagName)
	d.set(own, config.Rack, "tags", ownership.TagRackOfNode)
	return d
}

// role returns the name of the role of the pool's nodes.
func (p pool) role(config params.Config) string {
	if p.Name == ownership.BuildPool && config.BuildMinimalRole {
		return ownership.BuildNodeRole(config.Rack)
	}
	return ownership.NodeRole(config.Rack)
}

// setDevices sets the block devices, with the pool's disk, as the AMI family needs them.
func (p pool) setDevices(d *draft) {
	devices := p.devices(bootFamily(d.spec()))
	d.set(p.from("disk"), devices, "blockDeviceMappings")
	d.origins[place([]string{"blockDeviceMappings", strconv.Itoa(len(devices) - 1), "ebs", "volumeType"})] = p.from("volume_type")
}

func list(values []string) []any {
	all := make([]any, 0, len(values))
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

func taint(t params.Taint) map[string]any {
	made := map[string]any{"key": t.Key, "effect": t.Effect}
	if t.Value != "" {
		made["value"] = t.Value
	}
	return made
}
