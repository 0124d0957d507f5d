// Package params turns the texts that users write into a typed Config, or into all the Problems with them.
package params

// Param is one setting of a rack.
type Param struct {
	// Name is the last part of the parameter's path.
	Name string `json:"name"`
	// Section is the heading under which people find it.
	Section Section `json:"section"`
	// Type is bool, integer, list, duration or text.
	Type string `json:"type"`
	// Default is the text that an absent parameter stands for; empty where Absent explains it.
	Default string `json:"default,omitempty"`
	// Absent says what an absent parameter means, where no text stands for that.
	Absent string `json:"absent,omitempty"`
	// Pattern is the regular expression (RE2, whole value) that every good value obeys. SSM checks it at the write. A
	// value that obeys it may still be refused, by the parser (a number too large) or by a rule between parameters.
	Pattern string `json:"pattern"`
	// Allowed is the pattern in words, Example a good value.
	Allowed string `json:"allowed"`
	Example string `json:"example"`
	// Description is for SSM, the documentation and the command line.
	Description string `json:"description"`

	set func(*Config, string) error
}

// Section groups parameters.
type Section string

// The sections, in the order of the documentation.
const (
	SectionRack     Section = "Rack"
	SectionEnabling Section = "Enabling"
	SectionWorkload Section = "Workload pool"
)

// Patterns of values that several parameters share.
const (
	patternBool     = `true|false`
	patternPositive = `[1-9][0-9]{0,9}`
	patternCount    = `0|[1-9][0-9]{0,9}`
	patternList     = `[a-z0-9]+(,[a-z0-9]+)*`
	patternDelay    = `[0-9]+[smh]`
	patternExpiry   = `[0-9]+h|Never`
	patternBudget   = `[0-9]+%?`
	patternTypes    = `[a-z0-9-]+\.[a-z0-9-]+(,[a-z0-9-]+\.[a-z0-9-]+)*`
	patternCluster  = `[0-9A-Za-z][A-Za-z0-9_-]{0,99}`
)

// Table is every parameter there is, by name. Parsing, registration in SSM, the documentation and the command line all
// come from it.
var Table = []Param{
	{
		Name: "cluster_name", Section: SectionRack, Type: "text", Absent: "the rack's name", Pattern: patternCluster,
		Allowed: "the name of an EKS cluster", Example: "prod",
		Description: "The EKS cluster. Fixed once karpenter_auth_mode has been applied.",
		set:         text(func(c *Config) *string { return &c.ClusterName }),
	},
	{
		Name: "karpenter_arch", Section: SectionWorkload, Type: "list", Absent: "detected from node_type", Pattern: `amd64|arm64|amd64,arm64|arm64,amd64`,
		Allowed: "amd64, arm64, or both with a comma", Example: "amd64,arm64",
		Description: "CPU architectures of workload nodes.",
		set:         list(func(c *Config) *[]string { return &c.Workload.Arch }),
	},
	{
		Name: "karpenter_auth_mode", Section: SectionEnabling, Type: "bool", Default: "false", Pattern: patternBool,
		Allowed: "true or false", Example: "true",
		Description: "true prepares the cluster for Karpenter: access mode, access entries, discovery tags, labels, CRDs. One-way: it cannot be set back.",
		set:         boolean(func(c *Config) *bool { return &c.AuthMode }),
	},
	{
		Name: "karpenter_capacity_types", Section: SectionWorkload, Type: "list", Default: "on-demand", Pattern: `on-demand|spot|on-demand,spot|spot,on-demand`,
		Allowed: "on-demand, spot, or both with a comma", Example: "on-demand,spot",
		Description: "How workload nodes are bought. With both, Karpenter takes the cheaper and falls back to on-demand.",
		set:         list(func(c *Config) *[]string { return &c.Workload.CapacityTypes }),
	},
	{
		Name: "karpenter_consolidate_after", Section: SectionWorkload, Type: "duration", Default: "30s", Pattern: patternDelay,
		Allowed: "digits and one of s, m, h", Example: "5m",
		Description: "How long a node must be empty or underused before Karpenter consolidates it.",
		set:         duration(func(c *Config) *string { return &c.Workload.ConsolidateAfter }),
	},
	{
		Name: "karpenter_consolidation_enabled", Section: SectionWorkload, Type: "bool", Default: "true", Pattern: patternBool,
		Allowed: "true or false", Example: "true",
		Description: "true consolidates empty and underused nodes, false empty ones only.",
		set:         boolean(func(c *Config) *bool { return &c.Workload.Consolidation }),
	},
	{
		Name: "karpenter_cpu_limit", Section: SectionWorkload, Type: "integer", Default: "100", Pattern: patternPositive,
		Allowed: "an integer from 1 to 2147483647", Example: "200",
		Description: "Most vCPUs that workload nodes may have together.",
		set:         integer(1, func(c *Config) *int { return &c.Workload.CPULimit }),
	},
	{
		Name: "karpenter_disruption_budget_nodes", Section: SectionWorkload, Type: "text", Default: "10%", Pattern: patternBudget,
		Allowed: "a number of nodes, or a percentage from 0% to 100%", Example: "10%",
		Description: "Most workload nodes that Karpenter may disrupt at the same time.",
		set:         budget(func(c *Config) *string { return &c.Workload.DisruptionBudget }),
	},
	{
		Name: "karpenter_enabled", Section: SectionEnabling, Type: "bool", Default: "false", Pattern: patternBool,
		Allowed: "true or false", Example: "true",
		Description: "true runs Karpenter; needs karpenter_auth_mode=true. Only the word false turns it off again.",
		set:         boolean(func(c *Config) *bool { return &c.Enabled }),
	},
	{
		Name: "karpenter_instance_families", Section: SectionWorkload, Type: "list", Absent: "all families", Pattern: patternList,
		Allowed: "instance families (a-z, 0-9) with commas", Example: "c6i,m6i",
		Description: "EC2 instance families of workload nodes.",
		set:         list(func(c *Config) *[]string { return &c.Workload.Families }),
	},
	{
		Name: "karpenter_instance_sizes", Section: SectionWorkload, Type: "list", Absent: "all sizes", Pattern: patternList,
		Allowed: "instance sizes (a-z, 0-9) with commas", Example: "large,xlarge",
		Description: "EC2 instance sizes of workload nodes.",
		set:         list(func(c *Config) *[]string { return &c.Workload.Sizes }),
	},
	{
		Name: "karpenter_memory_limit_gb", Section: SectionWorkload, Type: "integer", Default: "400", Pattern: patternPositive,
		Allowed: "an integer from 1 to 2147483647", Example: "800",
		Description: "Most memory, in GiB, that workload nodes may have together.",
		set:         integer(1, func(c *Config) *int { return &c.Workload.MemoryLimitGB }),
	},
	{
		Name: "karpenter_node_disk", Section: SectionWorkload, Type: "integer", Default: "0", Pattern: patternCount,
		Allowed: "an integer from 0 to 2147483647", Example: "100",
		Description: "EBS volume of a workload node in GiB; 0 inherits node_disk.",
		set:         integer(0, func(c *Config) *int { return &c.Workload.Disk }),
	},
	{
		Name: "karpenter_node_expiry", Section: SectionWorkload, Type: "duration", Default: "720h", Pattern: patternExpiry,
		Allowed: "a number of hours above zero and the letter h, or Never", Example: "720h",
		Description: "How long a workload node may live before Karpenter replaces it.",
		set:         expiry(func(c *Config) *string { return &c.Workload.NodeExpiry }),
	},
	{
		Name: "karpenter_node_volume_type", Section: SectionWorkload, Type: "text", Default: "gp3", Pattern: `gp2|gp3|io1|io2`,
		Allowed: "gp2, gp3, io1 or io2", Example: "gp3",
		Description: "EBS volume type of workload nodes.",
		set:         text(func(c *Config) *string { return &c.Workload.VolumeType }),
	},
	{
		Name: "node_disk", Section: SectionRack, Type: "integer", Default: "20", Pattern: patternPositive,
		Allowed: "an integer from 1 to 2147483647", Example: "50",
		Description: "Disk of a node in GiB, where karpenter_node_disk is 0.",
		set:         integer(1, func(c *Config) *int { return &c.NodeDisk }),
	},
	{
		Name: "node_type", Section: SectionRack, Type: "list", Absent: "read from the system node groups", Pattern: patternTypes,
		Allowed: "EC2 instance types with commas", Example: "m6i.large",
		Description: "Instance types from which the architecture of workload nodes is detected.",
		set:         list(func(c *Config) *[]string { return &c.NodeTypes }),
	},
	{
		Name: "paused", Section: SectionRack, Type: "bool", Default: "false", Pattern: patternBool,
		Allowed: "true or false", Example: "true",
		Description: "true lets passes plan and report, and change nothing.",
		set:         boolean(func(c *Config) *bool { return &c.Paused }),
	},
}

// Lookup finds a parameter by name.
func Lookup(name string) (Param, bool) {
	for _, p := range Table {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// Unset is the word that stands for an absent value, because SSM cannot store an empty one.
const Unset = "unset"

// AllowedPattern is the parameter's pattern as SSM takes it: the whole value, or the word unset.
func (p Param) AllowedPattern() string { return "^(" + Unset + "|" + p.Pattern + ")$" }
