// Package params parses the texts of a rack's parameters into a typed Config, or returns all Problems with them.
package params

import (
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Param describes one setting of a rack.
type Param struct {
	// Name is the last part of the parameter's path.
	Name string `json:"name"`
	// Section is the heading that the documentation lists the parameter under.
	Section Section `json:"section"`
	Value
	// Default is the text used for an absent parameter. If it is empty, Absent explains the behavior.
	Default string `json:"default,omitempty"`
	// Absent describes what an absent parameter means if it has no Default.
	Absent string `json:"absent,omitempty"`
	// Description is the text for SSM, the documentation and the command line.
	Description string `json:"description"`

	// set is nil for JSON, which is read after all others.
	set func(*Config, string) error
}

// Value describes the texts that a parameter, or a field of a pool in additional_karpenter_nodepools_config, accepts.
type Value struct {
	// Type is bool, integer, list, duration, schedule, labels, taints, tags, version, json or text.
	Type string `json:"type"`
	// Pattern matches every valid value. SSM checks it at the write. The parser (for a number that is too large) or a
	// rule between parameters may still refuse a value that matches.
	Pattern Pattern `json:"pattern"`
	// Allowed is the pattern in words, Example a valid value. Words are the only elements of a value, if there are few.
	Allowed string   `json:"allowed"`
	Example string   `json:"example"`
	Words   []string `json:"-"`
}

// Pattern is a regular expression (RE2) without anchors. It must match the whole value.
type Pattern string

// Whole returns the expression with anchors, for functions that otherwise match anywhere in a text.
func (p Pattern) Whole() string {
	if strings.Contains(string(p), "|") {
		return "^(?:" + string(p) + ")$"
	}
	return "^" + string(p) + "$"
}

// MarshalText returns the expression with anchors.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.Whole()), nil }

// Section groups parameters.
type Section string

// Headings of the documentation.
const (
	SectionRack       Section = "Rack"
	SectionEnabling   Section = "Enabling"
	SectionWorkload   Section = "Workload pool"
	SectionBuild      Section = "Build pool"
	SectionOverride   Section = "The workload pool's override"
	SectionAll        Section = "All pools"
	SectionAdditional Section = "More pools"
	SectionController Section = "The controller"
)

// Sections lists the sections in the order of the documentation.
var Sections = []Section{
	SectionRack, SectionEnabling, SectionWorkload, SectionAll, SectionBuild, SectionOverride, SectionAdditional, SectionController,
}

// ofNodes are those of the rack's parameters that only describe Karpenter's nodes.
var ofNodes = []string{"build_node_type", "node_disk", "node_type"}

// ofPool reports whether a parameter describes a pool or the controller, or is unknown. Problems of these never block
// turning Karpenter off.
func ofPool(parameter string) bool {
	if slices.Contains(ofNodes, parameter) {
		return true
	}
	p, known := Lookup(parameter)
	return known && p.Section != SectionRack && p.Section != SectionEnabling || !known && parameter != "rack"
}

// Values that several parameters or fields share.
var (
	boolValue     = Value{Type: "bool", Pattern: `true|false`, Allowed: "true or false", Example: "true", Words: []string{"true", "false"}}
	positiveValue = Value{Type: "integer", Pattern: `[1-9][0-9]{0,9}`, Allowed: "an integer from 1 to 2147483647", Example: "200"}
	countValue    = Value{Type: "integer", Pattern: `0|[1-9][0-9]{0,9}`, Allowed: "an integer from 0 to 2147483647", Example: "100"}
	familiesValue = Value{Type: "list", Pattern: patternList, Allowed: "instance families (a-z, 0-9) with commas", Example: "c6i,m6i"}
	sizesValue    = Value{Type: "list", Pattern: patternList, Allowed: "instance sizes (a-z, 0-9) with commas", Example: "large,xlarge"}
	archValue     = Value{
		Type: "list", Pattern: commas(`(amd64|arm64)`), Allowed: "amd64, arm64, or both with a comma", Example: "amd64,arm64",
		Words: []string{"amd64", "arm64"},
	}
	capacityValue = Value{
		Type: "list", Pattern: commas(`(on-demand|spot)`), Allowed: "on-demand, spot, or both with a comma",
		Example: "on-demand,spot", Words: []string{"on-demand", "spot"},
	}
	delayValue  = Value{Type: "duration", Pattern: `[0-9]+[smh]`, Allowed: "digits and one of s, m, h", Example: "5m"}
	expiryValue = Value{
		Type: "duration", Pattern: `[0-9]+h|Never`, Allowed: "a number of hours above zero and the letter h, or Never", Example: "720h",
	}
	budgetValue = Value{
		Type: "text", Pattern: `[0-9]+%?`, Allowed: "a number of nodes, or a percentage from 0% to 100%", Example: "10%",
	}
	volumeTypeValue = Value{
		Type: "text", Pattern: `gp2|gp3|io1|io2`, Allowed: "gp2, gp3, io1 or io2", Example: "gp3",
		Words: []string{"gp3", "gp2", "io1", "io2"},
	}
	osValue = Value{
		Type: "text", Pattern: `al2023|bottlerocket`, Allowed: "al2023 or bottlerocket", Example: "bottlerocket",
		Words: []string{"al2023", "bottlerocket"},
	}
	iopsValue = Value{
		Type: "integer", Pattern: `0|[3-9][0-9]{3}|[1-7][0-9]{4}|80000`, Allowed: "0, or an integer from 3000 to 80000", Example: "6000",
	}
	throughputValue = Value{
		Type: "integer", Pattern: `0|12[5-9]|1[3-9][0-9]|[2-9][0-9]{2}|1[0-9]{3}|2000`, Allowed: "0, or an integer from 125 to 2000",
		Example: "250",
	}
	typesValue = Value{
		Type: "list", Pattern: commas(`[a-z0-9-]+\.[a-z0-9-]+`), Allowed: "EC2 instance types with commas", Example: "m6i.large",
	}
	taintsValue = Value{
		Type: "taints", Pattern: listed(patternName + `(=(` + patternLabel + `)?)?:(NoSchedule|PreferNoSchedule|NoExecute)`),
		Allowed: "key=value:Effect or key:Effect with commas, the effect NoSchedule, PreferNoSchedule or NoExecute",
		Example: "nvidia.com/gpu=true:NoSchedule",
	}
	groupsValue = Value{
		Type: "list", Pattern: commas(`[0-9A-Za-z][A-Za-z0-9_-]{0,62}`), Allowed: "names of managed node groups with commas",
		Example: "system-a,system-b",
	}
)

// Patterns used inside other patterns.
const (
	patternList       = `[a-z0-9]+(,[a-z0-9]+)*`
	patternName       = `([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?`
	patternLabel      = `[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?`
	patternDeployment = `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?`
)

// listed returns a pattern for a comma-separated list of elements, with optional white space around the commas and at
// the ends.
func listed(one string) Pattern { return Pattern(`\s*` + one + `(\s*,\s*` + one + `)*\s*`) }

// commas returns a pattern for a comma-separated list of elements.
func commas(one string) Pattern { return Pattern(one + `(,` + one + `)*`) }

// labelsValue describes labels, of which these are reserved.
func labelsValue(reserved []string) Value {
	return Value{
		Type: "labels", Pattern: listed(patternName + `=` + patternLabel),
		Allowed: "key=value with commas, valid in Kubernetes, without double quotes; not " + strings.Join(reserved, ", "),
		Example: "team=web,stage=prod",
	}
}

// tagsValue describes AWS tags.
var tagsValue = Value{Type: "tags", Pattern: commas(`[A-Za-z0-9+@_.:/-]+=[A-Za-z0-9+@_.:/-]+`),
	Allowed: "key=value with commas; not Name, Rack, eks:eks-cluster-name, nor the prefixes aws:, karpenter.sh/, " +
		"karpenter.k8s.aws/, kubernetes.io/, sawhorse.dev/",
	Example: "team=web,cost-center=42"}

// jsonValue describes a JSON parameter: the beginning of its JSON, and what it is.
func jsonValue(bracket, what, example string) Value {
	return Value{
		Type: "json", Pattern: Pattern(`\s*(` + bracket + `[\s\S]*|s3://\S+|[A-Za-z0-9+/=\s]+)\s*`),
		Allowed: what + ", base64 of one, or s3://bucket/key.json", Example: example,
	}
}

// Table lists every parameter, by name. Parsing, registration in SSM, the documentation and the command line all use
// it.
var Table = []Param{
	{
		Name: ParamAdditional, Section: SectionAdditional, Absent: "no more pools",
		Value:       jsonValue(`\[`, "a JSON array of pools", `[{"name":"gpu","instance_families":"g5"}]`),
		Description: "More pools: each entry gives a NodePool and an EC2NodeClass of its name.",
	},
	{Name: "build_node_enabled", Section: SectionRack, Default: "false", Value: boolValue,
		Description: "true gives Karpenter a pool for builds, and the build node groups go to zero; " +
			"with false they stay as they are, under Cluster Autoscaler.",
		set: setter(boolean, func(c *Config) *bool { return &c.BuildNodes })},
	{Name: buildNodeGroups, Section: SectionRack, Absent: "those labelled convox-build=true", Value: groupsValue,
		Description: "The managed node groups that run builds.",
		set:         setter(list, func(c *Config) *[]string { return &c.BuildNodeGroups })},
	{
		Name: "build_node_min_count", Section: SectionRack, Absent: "the size they had", Value: countValue,
		Description: "Size that build node groups at zero return to when Karpenter, or its pool for builds, is turned off.",
		set: func(c *Config, value string) error {
			size, err := integer(maxInt)(value)
			c.BuildNodeMin = &size
			return err
		},
	},
	{Name: ParamBuildRole, Section: SectionBuild, Default: "false", Value: boolValue,
		Description: "true gives build nodes, which run code of others, a role of their own without the policies of node_policy_arns. " +
			"A change replaces the build nodes.",
		set: setter(boolean, func(c *Config) *bool { return &c.BuildMinimalRole })},
	{Name: "build_node_type", Section: SectionRack, Absent: "node_type", Value: typesValue,
		Description: "Instance types; the architecture of build nodes is that of the first.",
		set:         setter(ordered, func(c *Config) *[]string { return &c.BuildNodeTypes })},
	{
		Name: "cluster_autoscaler", Section: SectionRack, Absent: "discovered by its image",
		Value: Value{
			Type: "text", Pattern: patternDeployment, Allowed: "namespace/name of a Deployment", Example: "kube-system/cluster-autoscaler",
		},
		Description: "The Cluster Autoscaler Deployment to hand over from, where there are several; " +
			"its image must be one named cluster-autoscaler.",
		set: setter(text, func(c *Config) *string { return &c.Autoscaler }),
	},
	{
		Name: clusterName, Section: SectionRack, Absent: "the rack's name",
		Value: Value{Type: "text", Pattern: `[0-9A-Za-z][A-Za-z0-9_-]{0,99}`, Allowed: "the name of an EKS cluster", Example: "prod"},
		Description: "The EKS cluster. It must carry the tag sawhorse.dev/rack={rack}, which sawhorse register sets. " +
			"Fixed once karpenter_auth_mode has been applied.",
		set: setter(text, func(c *Config) *string { return &c.ClusterName }),
	},
	{Name: "high_availability", Section: SectionRack, Default: "true", Value: boolValue,
		Description: "true runs two replicas of Karpenter's controller where the system nodes stand in two zones, else one.",
		set:         setter(boolean, func(c *Config) *bool { return &c.HighAvailability })},
	{Name: isolatedVPC, Section: SectionRack, Default: "false", Value: boolValue,
		Description: "true tells Karpenter that the VPC has no way to the internet: it then uses its built-in prices.",
		set:         setter(boolean, func(c *Config) *bool { return &c.IsolatedVPC })},
	{
		Name: ParamAlias, Section: SectionAll, Absent: "the family's latest", Value: aliasValue,
		Description: "The alias of the AMIs of every pool of its family whose AMI no field of a pool and no config of its own selects.",
		set:         setter(aliases, func(c *Config) *map[string]string { return &c.AMIAliases }),
	},
	{Name: "karpenter_arch", Section: SectionWorkload, Absent: "detected from node_type", Value: archValue,
		Description: "CPU architectures of workload nodes.",
		set:         setter(list, func(c *Config) *[]string { return &c.Workload.Arch })},
	{Name: authMode, Section: SectionEnabling, Default: "false", Value: boolValue,
		Description: "true prepares the cluster for Karpenter: access mode, access entries, discovery tags, labels, CRDs. " +
			"One-way: it cannot be set back.",
		set: setter(boolean, func(c *Config) *bool { return &c.AuthMode })},
	{Name: "karpenter_build_capacity_types", Section: SectionBuild, Default: "on-demand", Value: capacityValue,
		Description: "How build nodes are bought. With both, Karpenter takes the cheaper and falls back to on-demand.",
		set:         setter(list, func(c *Config) *[]string { return &c.Build.CapacityTypes })},
	{
		Name: ParamBuildConfig, Section: SectionBuild, Absent: "nothing is overridden",
		Value:       jsonValue(`\{`, "a JSON object with the keys nodePool and ec2NodeClass", `{"nodePool":{"weight":50}}`),
		Description: "Sections of the build pool's NodePool and EC2NodeClass that replace what the other parameters say.",
	},
	{Name: "karpenter_build_consolidate_after", Section: SectionBuild, Default: "60s", Value: delayValue,
		Description: "How long a build node must be empty before Karpenter removes it.",
		set:         setter(duration, func(c *Config) *string { return &c.Build.ConsolidateAfter })},
	{Name: "karpenter_build_cpu_limit", Section: SectionBuild, Default: "32", Value: positiveValue,
		Description: "Most vCPUs that build nodes may have together.",
		set:         setter(integer(maxInt), func(c *Config) *int { return &c.Build.CPULimit })},
	{
		Name: "karpenter_build_disruption_budget_nodes", Section: SectionBuild, Absent: "10%",
		Value: Value{Type: "text", Pattern: `(100|[0-9]{1,2})%|[0-9]+`,
			Allowed: "a number of nodes, or a percentage from 0% to 100%", Example: "50%"},
		Description: "Most empty build nodes that Karpenter may remove at the same time. For all other reasons it disrupts at most 10%.",
		set:         setter(budget, func(c *Config) *string { return &c.Build.DisruptionBudget }),
	},
	{Name: "karpenter_build_imds_hop_limit", Section: SectionBuild, Default: "0",
		Value: Value{Type: "integer", Pattern: `0|[1-9]|[1-5][0-9]|6[0-4]`, Allowed: "an integer from 0 to 64", Example: "2"},
		Description: "Hops that the instance metadata service of build nodes answers over; 0 is the pool's default. " +
			"With 2 and more, every build reaches the node's credentials.",
		set: setter(integer(maxInt), func(c *Config) *int { return &c.Build.IMDSHops })},
	{
		Name: "karpenter_build_imds_tokens", Section: SectionBuild, Absent: "the pool's default, required",
		Value: Value{Type: "text", Pattern: `optional|required`, Allowed: "optional or required", Example: "optional",
			Words: []string{"optional", "required"}},
		Description: "Whether the instance metadata service of build nodes demands tokens (IMDSv2).",
		set:         setter(text, func(c *Config) *string { return &c.Build.IMDSTokens }),
	},
	{Name: "karpenter_build_instance_families", Section: SectionBuild, Absent: "the workload's", Value: familiesValue,
		Description: "EC2 instance families of build nodes.",
		set:         setter(list, func(c *Config) *[]string { return &c.Build.Families })},
	{Name: "karpenter_build_instance_sizes", Section: SectionBuild, Absent: "the workload's", Value: sizesValue,
		Description: "EC2 instance sizes of build nodes.",
		set:         setter(list, func(c *Config) *[]string { return &c.Build.Sizes })},
	{Name: "karpenter_build_memory_limit_gb", Section: SectionBuild, Default: "256", Value: positiveValue,
		Description: "Most memory, in GiB, that build nodes may have together.",
		set:         setter(integer(maxInt), func(c *Config) *int { return &c.Build.MemoryLimitGB })},
	{Name: "karpenter_build_node_labels", Section: SectionBuild, Absent: "none", Value: labelsValue(reservedBuildLabels),
		Description: "Labels of build nodes, beside convox-build=true and convox.io/nodepool=build.",
		set:         setter(labels(reservedBuildLabels), func(c *Config) *map[string]string { return &c.Build.Labels })},
	{Name: "karpenter_capacity_types", Section: SectionWorkload, Default: "on-demand", Value: capacityValue,
		Description: "How workload nodes are bought. With both, Karpenter takes the cheaper and falls back to on-demand.",
		set:         setter(list, func(c *Config) *[]string { return &c.Workload.CapacityTypes })},
	{
		Name: ParamOverride, Section: SectionOverride, Absent: "nothing is overridden",
		Value:       jsonValue(`\{`, "a JSON object with the keys nodePool and ec2NodeClass", `{"nodePool":{"weight":50}}`),
		Description: "Sections of the workload pool's NodePool and EC2NodeClass that replace what the other parameters say.",
	},
	{Name: "karpenter_consolidate_after", Section: SectionWorkload, Default: "30s", Value: delayValue,
		Description: "How long a node must be empty or underused before Karpenter consolidates it.",
		set:         setter(duration, func(c *Config) *string { return &c.Workload.ConsolidateAfter })},
	{
		Name: "karpenter_consolidation_enabled", Section: SectionWorkload, Default: "true", Value: boolValue,
		Description: "true consolidates empty and underused nodes, false empty ones only.",
		set: func(c *Config, value string) error {
			c.Workload.ConsolidationPolicy = whenEmpty
			if value == "true" {
				c.Workload.ConsolidationPolicy = whenUnderutilized
			}
			return nil
		},
	},
	{
		Name: ParamController, Section: SectionController, Absent: "the chart's values",
		Value: jsonValue(`\{`, "a JSON object of values of the controller's chart", `{"logLevel":"debug"}`),
		Description: "Values of the chart of Karpenter's controller, in the names of the version's own values.yaml: resources, logging, " +
			"settings and feature gates, tolerations and others.",
	},
	{Name: "karpenter_cpu_limit", Section: SectionWorkload, Default: "100", Value: positiveValue,
		Description: "Most vCPUs that workload nodes may have together.",
		set:         setter(integer(maxInt), func(c *Config) *int { return &c.Workload.CPULimit })},
	{
		Name: ParamDefaults, Section: SectionAll, Absent: "the built-in defaults",
		Value: jsonValue(`\{`, "a JSON object with the keys nodePool and ec2NodeClass",
			`{"nodePool":{"template":{"spec":{"terminationGracePeriod":"48h"}}}}`),
		Description: "Sections of every pool's NodePool and EC2NodeClass that take the place of the built-in defaults. What a parameter, a " +
			"field of a pool or the pool's own config sets comes before it. Its consolidation does not reach the build pool and static pools.",
	},
	{Name: ParamBlockDuration, Section: SectionAll, Absent: "none", Value: blockValue,
		Description: "How long Karpenter replaces no node from each firing of karpenter_disruption_block_schedule on.",
		set:         setter(lasting("which would block nothing"), func(c *Config) *string { return &c.BlockDuration })},
	{
		Name: ParamBlockSchedule, Section: SectionAll, Absent: "none", Value: scheduleValue,
		Description: "When a time begins in which Karpenter replaces no node, of any pool, for drift or because it is underused: a budget of " +
			"0 nodes beside those that the pools have. Empty nodes are removed, and expiry, interruptions and node repair go on. " +
			"karpenter_disruption_block_duration says how long it is.",
		set: setter(blockSchedule, func(c *Config) *string { return &c.BlockSchedule }),
	},
	{Name: "karpenter_disruption_budget_nodes", Section: SectionWorkload, Default: "10%", Value: budgetValue,
		Description: "Most workload nodes that Karpenter may disrupt at the same time.",
		set:         setter(budget, func(c *Config) *string { return &c.Workload.DisruptionBudget })},
	{
		Name: ParamWindow, Section: SectionAll, Absent: "at any time", Value: windowValue,
		Description: "When Karpenter may replace nodes, of any pool, for drift or because they are underused; the rest of the week is blocked, " +
			"as by karpenter_disruption_block_schedule, beside which it cannot be set. A time that goes past midnight belongs to the day on " +
			"which it begins.",
		set: setter(window, func(c *Config) *string { return &c.Window }),
	},
	{Name: enabled, Section: SectionEnabling, Default: "false", Value: boolValue,
		Description: "true runs Karpenter; needs karpenter_auth_mode=true. Only the word false turns it off again.",
		set:         setter(boolean, func(c *Config) *bool { return &c.Enabled })},
	{Name: ParamFreeze, Section: SectionController, Default: "false", Value: boolValue,
		Description: "true adds a disruption budget of 0 nodes to every pool, so that Karpenter consolidates and replaces no node; " +
			"expiry, interruptions and, before Karpenter 1.15, node repair go on. It takes effect also while other parameters are wrong.",
		set: setter(boolean, func(c *Config) *bool { return &c.Freeze })},
	{
		Name: "karpenter_image_repository", Section: SectionRack, Absent: "the chart's",
		Value: Value{Type: "text", Pattern: `[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)+`,
			Allowed: "an image repository without a tag",
			Example: "123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter/controller"},
		Description: "Where the cluster pulls Karpenter's controller image from, for private clusters. For a version whose digest is not " +
			"known, only what the stack's imageRepositories allow.",
		set: setter(text, func(c *Config) *string { return &c.ImageRepository }),
	},
	{
		Name: "karpenter_instance_families", Section: SectionWorkload, Absent: "all families", Value: familiesValue,
		Description: "EC2 instance families of workload nodes. Without it, Karpenter may also launch burstable types (t3, t4g) and old ones " +
			"(m1, a1): to exclude them, name families, or write karpenter.k8s.aws/instance-category and karpenter.k8s.aws/instance-generation " +
			"into karpenter_config's requirements.",
		set: setter(list, func(c *Config) *[]string { return &c.Workload.Families }),
	},
	{Name: "karpenter_instance_sizes", Section: SectionWorkload, Absent: "all sizes", Value: sizesValue,
		Description: "EC2 instance sizes of workload nodes.",
		set:         setter(list, func(c *Config) *[]string { return &c.Workload.Sizes })},
	{Name: "karpenter_memory_limit_gb", Section: SectionWorkload, Default: "400", Value: positiveValue,
		Description: "Most memory, in GiB, that workload nodes may have together.",
		set:         setter(integer(maxInt), func(c *Config) *int { return &c.Workload.MemoryLimitGB })},
	{Name: "karpenter_node_disk", Section: SectionWorkload, Default: "0", Value: countValue,
		Description: "EBS volume of a workload node in GiB; 0 inherits node_disk.",
		set:         setter(integer(maxInt), func(c *Config) *int { return &c.Workload.Disk })},
	{Name: "karpenter_node_expiry", Section: SectionWorkload, Default: "720h", Value: expiryValue,
		Description: "How long a workload node may live before Karpenter replaces it.",
		set:         setter(expiry, func(c *Config) *string { return &c.Workload.NodeExpiry })},
	{Name: "karpenter_node_labels", Section: SectionWorkload, Absent: "none", Value: labelsValue(reservedLabels),
		Description: "Labels of workload nodes, beside convox.io/nodepool=workload.",
		set:         setter(labels(reservedLabels), func(c *Config) *map[string]string { return &c.Workload.Labels })},
	{Name: "karpenter_node_os", Section: SectionWorkload, Default: "al2023", Value: osValue,
		Description: "The operating system of workload nodes.",
		set:         setter(text, func(c *Config) *string { return &c.Workload.OS })},
	{
		Name: ParamOverlays, Section: SectionAll, Absent: "no overlays",
		Value: jsonValue(`\[`, "a JSON array of NodeOverlays, each with name, requirements, weight, and capacity, price or priceAdjustment",
			`[{"name":"prefer-c7g","requirements":[{"key":"karpenter.k8s.aws/instance-family","operator":"In","values":["c7g"]}],`+
				`"priceAdjustment":"-10%"}]`),
		Description: "NodeOverlays: what Karpenter assumes of instance types, their price and their extended resources. They switch on its " +
			"feature gate NodeOverlay.",
	},
	{Name: "karpenter_node_taints", Section: SectionWorkload, Absent: "none", Value: taintsValue,
		Description: "Taints of workload nodes: only pods that tolerate them run there.",
		set:         setter(taints, func(c *Config) *[]Taint { return &c.Workload.Taints })},
	{Name: "karpenter_node_volume_iops", Section: SectionWorkload, Default: "0", Value: iopsValue,
		Description: "IOPS of a workload node's gp3 volume, at most 500 for each GiB of its disk; 0 is EC2's default, 3000. " +
			"The build pool has them too, and pools that set none.",
		set: setter(integer(maxInt), func(c *Config) *int { return &c.Workload.VolumeIOPS })},
	{Name: "karpenter_node_volume_throughput", Section: SectionWorkload, Default: "0", Value: throughputValue,
		Description: "Throughput in MiB/s of a workload node's gp3 volume, at most a quarter of its IOPS; 0 is EC2's default, 125. " +
			"The build pool has it too, and pools that set none.",
		set: setter(integer(maxInt), func(c *Config) *int { return &c.Workload.VolumeThroughput })},
	{Name: "karpenter_node_volume_type", Section: SectionWorkload, Default: "gp3", Value: volumeTypeValue,
		Description: "EBS volume type of workload nodes.",
		set:         setter(text, func(c *Config) *string { return &c.Workload.VolumeType })},
	{
		Name: ParamRotateAfter, Section: SectionAll, Absent: "none",
		Value: Value{Type: "duration", Pattern: `[0-9]+h`, Allowed: "a number of hours above zero and the letter h", Example: "480h"},
		Description: "Nodes older than this are replaced as drifted ones are: within budgets and windows, the replacement first, unlike those " +
			"that expire. Every audit looks for them.",
		set: setter(lasting("which would replace every node again and again"), func(c *Config) *string { return &c.RotateAfter }),
	},
	{
		Name: ParamVersion, Section: SectionController, Value: versionValue,
		Absent: "the version that the rack runs, or " + ownership.KarpenterVersion + " when Karpenter is turned on",
		Description: "The version of Karpenter. Another one replaces the controller, one pod at a time; if it or a pool is not Ready then, " +
			"the version before comes back (karpenter-versions.md).",
		set: setter(version, func(c *Config) *string { return &c.KarpenterVersion }),
	},
	{Name: ParamMigrate, Section: SectionRack, Absent: "none", Value: groupsValue,
		Description: "System node groups whose nodes are emptied once Karpenter has taken over, one node at a time, with PodDisruptionBudgets " +
			"and karpenter.sh/do-not-disrupt respected; their sizes follow. Unset stops it, and karpenter_enabled=false brings the sizes back.",
		set: setter(list, func(c *Config) *[]string { return &c.MigrateNodeGroups })},
	{Name: "node_disk", Section: SectionRack, Default: "20", Value: positiveValue,
		Description: "Disk of a node in GiB, where karpenter_node_disk is 0. The AMIs of AL2023 need 20.",
		set:         setter(integer(maxInt), func(c *Config) *int { return &c.NodeDisk })},
	{
		Name: nodePolicies, Section: SectionRack, Absent: "none",
		Value: Value{
			Type: "list", Pattern: commas(`arn:aws[a-z-]*:iam::(aws|[0-9]{12}):policy/[A-Za-z0-9+=.@_/-]+`),
			Allowed: "ARNs of IAM policies with commas", Example: "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy",
		},
		Description: "Further policies of the role of Karpenter's nodes, within what the stack's nodeActions allow.",
		set:         setter(list, func(c *Config) *[]string { return &c.NodePolicyARNs }),
	},
	{Name: "node_type", Section: SectionRack, Absent: "read from the system node groups", Value: typesValue,
		Description: "Instance types; the architecture of workload nodes is that of the first.",
		set:         setter(ordered, func(c *Config) *[]string { return &c.NodeTypes })},
	{Name: "nvidia_device_plugin_enable", Section: SectionRack, Default: "false", Value: boolValue,
		Description: "true runs the NVIDIA device plugin on GPU nodes while Karpenter is on.",
		set:         setter(boolean, func(c *Config) *bool { return &c.NVIDIADevicePlugin })},
	{Name: ParamPaused, Section: SectionRack, Default: "false", Value: boolValue,
		Description: "true lets passes plan and report, and change nothing, also while other parameters are wrong.",
		set:         setter(boolean, func(c *Config) *bool { return &c.Paused })},
	{
		Name: securityGroupIDs, Section: SectionRack, Absent: "discovered from the cluster and its node groups",
		Value: Value{
			Type: "list", Pattern: commas(`sg-[0-9a-f]{8,17}`), Allowed: "security group ids with commas", Example: "sg-0123456789abcdef0",
		},
		Description: "Security groups of Karpenter's nodes: what gets the discovery tag. They are in the cluster's VPC.",
		set:         setter(list, func(c *Config) *[]string { return &c.SecurityGroupIDs }),
	},
	{
		Name: subnetIDs, Section: SectionRack, Absent: "discovered from the node groups",
		Value: Value{
			Type: "list", Pattern: commas(`subnet-[0-9a-f]{8,17}`), Allowed: "subnet ids with commas", Example: "subnet-0123456789abcdef0",
		},
		Description: "Subnets of Karpenter's nodes: what gets the discovery tag. They are in the cluster's VPC.",
		set:         setter(list, func(c *Config) *[]string { return &c.SubnetIDs }),
	},
	{
		Name: "system_deployments", Section: SectionRack, Absent: "metrics server, rack API, resolver, routers",
		Value: Value{
			Type: "list", Pattern: commas(patternDeployment), Allowed: "namespace/name of Deployments with commas",
			Example: "kube-system/metrics-server,kube-system/coredns",
		},
		Description: "The Deployments that are pinned to system nodes: of kube-system, " +
			"of the rack's own namespace {rack}-system and of the stack's systemNamespaces; never Karpenter's own.",
		set: setter(list, func(c *Config) *[]string { return &c.SystemDeployments }),
	},
	{
		Name: systemNodeGroups, Section: SectionRack,
		Absent: "those that are neither build nor additional groups, and have no taint for special work", Value: groupsValue,
		Description: "The managed node groups whose nodes are system nodes. " +
			"With Karpenter, one of SPOT capacity is replaced by an on-demand copy, and deleted.",
		set: setter(list, func(c *Config) *[]string { return &c.SystemNodeGroups }),
	},
	{
		Name: "tags", Section: SectionRack, Absent: "none",
		Value:       tagsValue,
		Description: "AWS tags of everything that Sawhorse creates, nodes included. A key that is taken out stays on what has it, but for nodes.",
		set:         setter(tags, func(c *Config) *map[string]string { return &c.Tags }),
	},
}

// Names of parameters that package plan and its parts refer to as well.
const (
	// The first three have the structure of the manifests: paths are the same in both.
	ParamOverride    = "karpenter_config"
	ParamBuildConfig = "karpenter_build_config"
	ParamDefaults    = "karpenter_defaults_config"
	ParamAdditional  = "additional_karpenter_nodepools_config"
	ParamAlias       = "karpenter_ami_alias"
	ParamController  = "karpenter_controller_config"
	ParamVersion     = "karpenter_version"
	ParamFreeze      = "karpenter_freeze"
	ParamBuildRole   = "build_node_minimal_role_enabled"
	ParamPaused      = "paused"
	ParamOverlays    = "karpenter_node_overlays_config"
	// ParamRotateAfter is the age at which nodes are replaced within budgets.
	ParamRotateAfter = "karpenter_rotate_after"
	// ParamWindow says when Karpenter may replace nodes, ParamBlockSchedule and ParamBlockDuration when it may not.
	ParamWindow        = "karpenter_disruption_window"
	ParamBlockSchedule = "karpenter_disruption_block_schedule"
	ParamBlockDuration = "karpenter_disruption_block_duration"
	ParamMigrate       = "migrate_node_groups"
)

// Names of the other parameters that the rules refer to.
const (
	authMode         = "karpenter_auth_mode"
	enabled          = "karpenter_enabled"
	isolatedVPC      = "isolated_vpc"
	clusterName      = "cluster_name"
	buildNodeGroups  = "build_node_groups"
	systemNodeGroups = "system_node_groups"
	subnetIDs        = "subnet_ids"
	securityGroupIDs = "security_group_ids"
	nodePolicies     = "node_policy_arns"
)

const (
	whenEmpty         = "WhenEmpty"
	whenUnderutilized = "WhenEmptyOrUnderutilized"

	maxInt = 1<<31 - 1
)

// Lookup returns the parameter of a name.
func Lookup(name string) (Param, bool) {
	for _, p := range Table {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// Unset is the value that means absent, because SSM cannot store an empty one.
const Unset = "unset"

// Default is the value that means the built-in default: the same as Unset.
const Default = "default"

// AllowedPattern returns the pattern for SSM: the whole value, or one of the words unset and default.
func (p Param) AllowedPattern() string {
	return "^(" + Unset + "|" + Default + "|" + string(p.Pattern) + ")$"
}
