package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	taint *params.Taint
	// defaults is karpenter_defaults_config, and poolConfig the pool's own config.
	defaults, poolConfig layer
	// aliases is karpenter_ami_alias.
	aliases map[string]string
	// idle pools are checked but not applied; the one of karpenter_defaults_config alone is one.
	idle, alone bool
	api         *api
	// guessed means that the pool's architecture is a default, because no parameter and no node group defines it.
	guessed bool
}

// pools returns the pools of a rack: workload, build, and the additional ones. Without build nodes, the build pool is there
// to be checked, if it has settings that the workload pool does not have.
func pools(config params.Config, facts plan.Facts) []pool {
	workload := pool{
		Pool: config.Workload, from: workloadOrigin(config), poolConfig: layer{params.ParamOverride, "", config.Workload.Override},
	}
	workload.Name, workload.Arch = ownership.WorkloadPool, plan.Arch(config, facts)
	unseen := len(config.NodeTypes) == 0 && len(facts.OfRole(config, plan.RoleSystem)) == 0
	workload.guessed = unseen && len(config.Workload.Arch) == 0
	if workload.Disk == 0 {
		workload.Disk = config.NodeDisk
	}
	all := []pool{workload}
	if config.BuildNodes || buildsDiffer(config) {
		build := buildPool(config, facts, workload)
		build.guessed = unseen && len(config.BuildNodeTypes) == 0 && len(facts.OfRole(config, plan.RoleBuild)) == 0
		all = append(all, build)
	}
	for i, p := range config.Additional {
		all = append(all, additionalPool(fmt.Sprintf("[%d]", i), p, workload))
	}
	if config.Defaults.NodePool != nil || config.Defaults.EC2NodeClass != nil { // which are judged where every pool overrides them, too
		alone := pool{Pool: config.Workload, from: workload.from, idle: true, alone: true}
		alone.Name, alone.Arch, alone.Disk = "default", workload.Arch, workload.Disk
		alone.from = func(field string) origin { from := workload.from(field); from.builtin = true; return from }
		all = append(all, alone)
	}
	for i := range all {
		all[i].defaults = layer{params.ParamDefaults, "", config.Defaults}
		all[i].aliases = aliases(config, facts)
	}
	return all
}

// aliases returns the aliases for all pools by family. One by age stands for the release that was found, and for the newest one where none
// was looked up.
func aliases(config params.Config, facts plan.Facts) map[string]string {
	all := maps.Clone(config.AMIAliases)
	for family, alias := range all {
		if _, _, aged := plan.AgedAlias(alias); aged {
			all[family] = cmp.Or(facts.Aged[alias], family+"@latest")
		}
	}
	return all
}

// buildsDiffer reports whether the build pool has settings that the workload pool does not have.
func buildsDiffer(config params.Config) bool {
	build := config.Build
	return len(build.Families)+len(build.Sizes)+len(build.Labels)+len(build.Override.NodePool)+len(build.Override.EC2NodeClass) > 0
}

// additionalPool returns the pool of an entry of additional_karpenter_nodepools_config, at a path in it.
func additionalPool(at string, p params.Pool, workload pool) pool {
	extra := pool{Pool: p, poolConfig: layer{params.ParamAdditional, at, p.Override}}
	var inherited []string
	if p.Disk == 0 {
		extra.Disk, inherited = workload.Disk, append(inherited, "disk")
	}
	inherited = append(inherited, extra.inheritVolume(workload)...)
	extra.from = func(field string) origin {
		from := origin{parameter: params.ParamAdditional, path: params.Join(at, field), builtin: field == "name" || !p.Has(field)}
		if slices.Contains(inherited, field) && from.builtin {
			return workload.from(field)
		}
		if field == "disk" && p.Disk == 0 { // written, for the workload's
			return origin{parameter: workload.from(field).parameter}
		}
		return from
	}
	if p.Dedicated {
		extra.taint = &params.Taint{Key: "dedicated-node", Value: p.Name, Effect: "NoSchedule"}
	}
	return extra
}

// inheritVolume gives a gp3 volume the workload's IOPS and throughput, unless the pool's entry sets its own. It returns the
// fields that are inherited.
func (p *pool) inheritVolume(workload pool) (inherited []string) {
	if p.VolumeType != "gp3" || workload.VolumeType != "gp3" {
		return nil
	}
	if !p.Has("volume_iops") {
		p.VolumeIOPS, inherited = workload.VolumeIOPS, append(inherited, "volume_iops")
	}
	if !p.Has("volume_throughput") {
		p.VolumeThroughput, inherited = workload.VolumeThroughput, append(inherited, "volume_throughput")
	}
	return inherited
}

func workloadOrigin(config params.Config) func(string) origin {
	parameters := map[string]string{
		"name": "karpenter_enabled", "disk": "karpenter_node_disk", "consolidation_policy": "karpenter_consolidation_enabled",
		"labels": "karpenter_node_labels", "taints": "karpenter_node_taints", "os": "karpenter_node_os",
		"volume_type": "karpenter_node_volume_type", "volume_iops": "karpenter_node_volume_iops",
		"volume_throughput": "karpenter_node_volume_throughput",
	}
	if override := config.Workload.Override; override.NodePool != nil || override.EC2NodeClass != nil {
		parameters["name"] = params.ParamOverride
	}
	if config.Workload.Disk == 0 {
		parameters["disk"] = "node_disk"
	}
	if len(config.Workload.Arch) == 0 {
		parameters["arch"] = "node_type"
	}
	return func(field string) origin {
		from := origin{parameter: cmp.Or(parameters[field], "karpenter_"+field)}
		switch field {
		case "disk": // a written karpenter_node_disk of 0 asks for node_disk
			from.builtin = !config.Has(from.parameter) && !config.Has("karpenter_node_disk")
		case "arch": // what is only detected is a default
			from.builtin = !config.Has("karpenter_arch")
		default:
			from.builtin = field == "name" || !config.Has(from.parameter)
		}
		return from
	}
}

// buildPool returns the pool for build nodes. It has the workload's expiry, disk and volume and, if its own are not set, the
// workload's instance families and sizes.
func buildPool(config params.Config, facts plan.Facts, workload pool) pool {
	build := pool{Pool: config.Build, idle: !config.BuildNodes, poolConfig: layer{params.ParamBuildConfig, "", config.Build.Override}}
	build.Name, build.Arch = ownership.BuildPool, plan.BuildArch(config, facts)
	build.NodeExpiry, build.Disk, build.VolumeType = workload.NodeExpiry, workload.Disk, workload.VolumeType
	build.ConsolidationPolicy = "WhenEmpty"
	build.taint = &params.Taint{Key: ownership.TaintBuild, Value: ownership.BuildPool, Effect: "NoSchedule"}
	inherited := append([]string{"node_expiry", "disk", "volume_type"}, build.inheritVolume(workload)...)
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
		name := cmp.Or(parameters[field], "karpenter_build_"+field)
		return origin{parameter: name, builtin: parameters[field] != "" && field != "labels" || !config.Has(name)}
	}
	return build
}

func (p pool) nodePool(config params.Config) *draft {
	d := p.newDraft("karpenter.sh/v1", "NodePool", config.Rack)
	d.idle, d.alone, d.tolerated, d.guessed = p.idle, p.alone, p.taint, p.guessed
	p.settings(d, func(origin) bool { return true })
	var before []requirement
	if p.poolConfig.NodePool != nil || p.defaults.NodePool != nil {
		before = d.readRequirements()
	}
	if p.defaults.NodePool != nil {
		p.defaultsOfPool().nodePool(d)
		p.settings(d, func(from origin) bool { return !from.builtin })
	}
	p.poolConfig.nodePool(d)
	d.block(config)
	p.keepTaint(d)
	if from, known := d.origin([]string{"spec", "template", "spec", "requirements"}); known && from.config {
		d.guessed, d.replaced = false, before
	}
	d.set(p.from("name"), p.Name, "template", "metadata", "labels", ownership.LabelNodePool)
	if p.Name == ownership.BuildPool {
		d.set(p.from("name"), "true", "template", "metadata", "labels", ownership.LabelBuild)
	}
	return d
}

// defaultsOfPool returns karpenter_defaults_config as it is for the pool: its consolidation does not reach build nodes, which run
// until their build ends, and static pools.
func (p pool) defaultsOfPool() layer {
	disruption := inner(p.defaults.NodePool, "disruption")
	if disruption == nil || p.Name != ownership.BuildPool && !p.poolConfig.Static() {
		return p.defaults
	}
	disruption = maps.Clone(disruption)
	delete(disruption, "consolidationPolicy")
	delete(disruption, "consolidateAfter")
	made := p.defaults
	made.NodePool = maps.Clone(made.NodePool)
	made.NodePool["disruption"] = disruption
	return made
}

// settings sets those fields of the NodePool whose origin passes.
func (p pool) settings(d *draft, passes func(origin) bool) {
	set := func(field string, value any, path ...string) {
		if from := p.from(field); passes(from) {
			d.set(from, value, path...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		set("labels", p.Labels[key], "template", "metadata", "labels", key)
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
		if from := p.from(r.field); len(r.values) > 0 && passes(from) {
			d.require(from, r.key, r.values)
		}
	}
	p.setTaints(d, passes)
	set("node_expiry", p.NodeExpiry, "template", "spec", "expireAfter")
	set("name", map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": p.Name}, "template", "spec", "nodeClassRef")
	if p.poolConfig.Static() {
		d.set(p.from("name"), "Never", "disruption", "consolidateAfter") // the definition asks for one
	} else {
		set("cpu_limit", strconv.Itoa(p.CPULimit), "limits", "cpu")
		set("memory_limit_gb", fmt.Sprintf("%dGi", p.MemoryLimitGB), "limits", "memory")
		set("consolidation_policy", p.ConsolidationPolicy, "disruption", "consolidationPolicy")
		set("consolidate_after", p.ConsolidateAfter, "disruption", "consolidateAfter")
		if p.Weight > 0 {
			set("weight", int64(p.Weight), "weight")
		}
	}
	if p.DisruptionBudget != "" {
		set("disruption_budget_nodes", p.budgets(), "disruption", "budgets")
	}
}

// budgets returns the disruption budgets. The build pool's own is for empty nodes, and all others stay at Karpenter's default: a
// node that drifts may run a build.
func (p pool) budgets() []any {
	if p.Name != ownership.BuildPool {
		return []any{map[string]any{"nodes": p.DisruptionBudget}}
	}
	return []any{
		map[string]any{"nodes": p.DisruptionBudget, "reasons": []any{"Empty"}},
		map[string]any{"nodes": "10%", "reasons": []any{"Drifted", "Underutilized"}},
	}
}

// require sets a requirement in place of those of its key, or adds it.
func (d *draft) require(from origin, key string, values []string) {
	value := map[string]any{"key": key, "operator": "In", "values": list(values)}
	at := []string{"template", "spec", "requirements"}
	ofKey := func(e element) bool { fields, _ := e.value.(map[string]any); return fields["key"] == key }
	all := d.elements(at...)
	first := slices.IndexFunc(all, ofKey)
	if first < 0 {
		d.add(from, value, at...)
		return
	}
	all = slices.DeleteFunc(all, ofKey)
	d.list(slices.Insert(all, first, element{value, from}), at...)
}

// setTaints sets the taints: first the one that Sawhorse sets, then those of the parameter or, if it is not set, what is there.
func (p pool) setTaints(d *draft, passes func(origin) bool) {
	at := []string{"template", "spec", "taints"}
	all := d.elements(at...)
	if given := p.from("taints"); passes(given) {
		all = nil
		for _, t := range p.Taints {
			all = append(all, element{taint(t), given})
		}
	}
	if p.taint != nil {
		ours := element{taint(*p.taint), p.from("dedicated")}
		all = append([]element{ours}, slices.DeleteFunc(all, func(e element) bool { return e.from == ours.from })...)
	}
	if len(all) > 0 {
		d.list(all, at...)
	}
}

// keepTaint puts the build nodes' taint before those of the pool's own config.
func (p pool) keepTaint(d *draft) {
	if _, replaced := inner(p.poolConfig.NodePool, "template", "spec")["taints"].([]any); replaced && p.Name == ownership.BuildPool {
		p.setTaints(d, func(origin) bool { return false })
	}
}

func (p pool) nodeClass(config params.Config) *draft {
	d := p.newDraft("karpenter.k8s.aws/v1", "EC2NodeClass", config.Rack)
	d.idle, d.alone = p.idle, p.alone
	discovery := []any{map[string]any{"tags": map[string]any{ownership.TagDiscovery: config.ClusterName}}}
	fallback := p.from("name")
	d.set(fallback, []any{map[string]any{"alias": "al2023@latest"}}, "amiSelectorTerms")
	d.set(fallback, map[string]any{
		"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": int64(1),
	}, "metadataOptions")
	p.defaults.nodeClass(d)
	for _, key := range slices.Sorted(maps.Keys(config.Tags)) {
		d.set(origin{parameter: "tags"}, config.Tags[key], "tags", key)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		d.set(p.from("tags"), p.Tags[key], "tags", key)
	}
	p.setImages(d)
	if p.IMDSTokens != "" {
		d.set(p.from("imds_tokens"), p.IMDSTokens, "metadataOptions", "httpTokens")
	}
	if p.IMDSHops > 0 {
		d.set(p.from("imds_hop_limit"), int64(p.IMDSHops), "metadataOptions", "httpPutResponseHopLimit")
	}
	p.poolConfig.nodeClass(d)
	if own, of := p.poolConfig.EC2NodeClass, aliasFamily(p.poolConfig.EC2NodeClass); p.AMI != "" && own["amiFamily"] == nil && of != "" &&
		!strings.EqualFold(of, p.OS) {
		d.remove("amiFamily") // that of ami_id, whose image the config's alias replaces
	}
	p.setDevices(d)
	d.set(fallback, p.role(config), "role")
	cluster := origin{parameter: "cluster_name", builtin: !config.Has("cluster_name")}
	d.set(cluster, discovery, "subnetSelectorTerms")
	d.set(cluster, discovery, "securityGroupSelectorTerms")
	d.set(fallback, ownership.NodeName(config.Rack, p.Name), "tags", ownership.TagName)
	d.set(fallback, config.Rack, "tags", ownership.TagRackOfNode)
	return d
}

// setImages selects the AMIs that the pool's fields and karpenter_ami_alias name.
func (p pool) setImages(d *draft) {
	from, family := p.from("os"), cmp.Or(p.OS, familyAL2023)
	if p.AMI != "" {
		d.override(p.from("ami_id"), []any{map[string]any{"id": p.AMI}}, "amiSelectorTerms")
		d.override(from, display(family), "amiFamily")
		return
	}
	given := p.OS != "" && !from.builtin
	if !given {
		family = bootFamily(d.spec())
	}
	alias := family + "@latest"
	switch named := p.aliases[family]; {
	case named != "":
		from, alias = origin{parameter: params.ParamAlias}, named
	case !given:
		return
	}
	d.override(from, []any{map[string]any{"alias": alias}}, "amiSelectorTerms")
	if was, _ := d.spec()["amiFamily"].(string); !strings.EqualFold(was, family) && !strings.EqualFold(was, familyCustom) {
		d.remove("amiFamily") // the alias says it
	}
}

// role returns the name of the role of the pool's nodes.
func (p pool) role(config params.Config) string {
	if p.Name == ownership.BuildPool && config.BuildMinimalRole {
		return ownership.BuildNodeRole(config.Rack)
	}
	return ownership.NodeRole(config.Rack)
}

// setDevices sets the block devices, with the pool's disk, as the AMI family needs them. Those of a config stay: of the pool's own
// one always, of the defaults unless a parameter or a field says what the volume is.
func (p pool) setDevices(d *draft) {
	fields := []string{"disk", "volume_type", "volume_iops", "volume_throughput"}
	given := slices.ContainsFunc(fields, func(field string) bool { return !p.from(field).builtin })
	if p.poolConfig.EC2NodeClass["blockDeviceMappings"] != nil || p.defaults.EC2NodeClass["blockDeviceMappings"] != nil && !given {
		return
	}
	devices := p.devices(bootFamily(d.spec()))
	d.override(p.from("disk"), devices, "blockDeviceMappings")
	for key, field := range map[string]string{"volumeType": "volume_type", "iops": "volume_iops", "throughput": "volume_throughput"} {
		if key == "volumeType" || key != "iops" && p.VolumeThroughput > 0 || key == "iops" && p.VolumeIOPS > 0 {
			d.origins[place([]string{"blockDeviceMappings", strconv.Itoa(len(devices) - 1), "ebs", key})] = p.from(field)
		}
	}
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
