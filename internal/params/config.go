package params

import "slices"

// Config holds a rack's settings as typed values. Every value is valid, and defaults are filled in.
type Config struct {
	Rack        string   `json:"rack"`
	ClusterName string   `json:"clusterName"`
	NodeTypes   []string `json:"nodeTypes,omitempty"`
	// NodeDisk is in GiB.
	NodeDisk   int  `json:"nodeDisk"`
	BuildNodes bool `json:"buildNodes,omitempty"`
	// BuildMinimalRole gives build nodes a role of their own.
	BuildMinimalRole bool     `json:"buildMinimalRole,omitempty"`
	BuildNodeTypes   []string `json:"buildNodeTypes,omitempty"`
	// BuildNodeMin is nil if the build node groups return to the size they had before.
	BuildNodeMin     *int     `json:"buildNodeMin,omitempty"`
	HighAvailability bool     `json:"highAvailability,omitempty"`
	Paused           bool     `json:"paused,omitempty"`
	NodePolicyARNs   []string `json:"nodePolicyARNs,omitempty"`
	ImageRepository  string   `json:"imageRepository,omitempty"`
	IsolatedVPC      bool     `json:"isolatedVPC,omitempty"`
	// AMIAliases maps the families of AMIs to the alias of each that pools run which select no other AMI.
	AMIAliases map[string]string `json:"amiAliases,omitempty"`
	// Autoscaler is the namespace/name of the Cluster Autoscaler Deployment. If empty, it is found by its image.
	Autoscaler         string            `json:"autoscaler,omitempty"`
	SystemDeployments  []string          `json:"systemDeployments,omitempty"`
	NVIDIADevicePlugin bool              `json:"nvidiaDevicePlugin,omitempty"`
	SystemNodeGroups   []string          `json:"systemNodeGroups,omitempty"`
	BuildNodeGroups    []string          `json:"buildNodeGroups,omitempty"`
	MigrateNodeGroups  []string          `json:"migrateNodeGroups,omitempty"`
	SubnetIDs          []string          `json:"subnetIDs,omitempty"`
	SecurityGroupIDs   []string          `json:"securityGroupIDs,omitempty"`
	Tags               map[string]string `json:"tags,omitempty"`
	AuthMode           bool              `json:"authMode,omitempty"`
	Enabled            bool              `json:"enabled,omitempty"`
	Workload           Pool              `json:"workload"`
	Build              Pool              `json:"build"`
	// Defaults is karpenter_defaults_config.
	Defaults Override `json:"defaults,omitzero"`
	// Given has the sorted names of the parameters that are written and valid. All others have their defaults.
	Given []string `json:"given,omitempty"`
	// KarpenterVersion is a version of the catalogue, or empty if the parameter is not set.
	KarpenterVersion string `json:"karpenterVersion,omitempty"`
	// ControllerValues are values of the controller's chart, without those that Sawhorse sets itself. Numbers are int64 or
	// float64. Null fields are left out.
	ControllerValues map[string]any `json:"controllerValues,omitempty"`
	// Freeze keeps Karpenter from disrupting nodes of its own accord.
	Freeze bool `json:"freeze,omitempty"`
	// BlockSchedule and BlockDuration, or Window, say when Karpenter replaces no node of its own accord (Blocks).
	BlockSchedule string `json:"blockSchedule,omitempty"`
	BlockDuration string `json:"blockDuration,omitempty"`
	Window        string `json:"window,omitempty"`
	// RotateAfter is the age, a duration as written, at which nodes are replaced within budgets. It may be empty.
	RotateAfter string `json:"rotateAfter,omitempty"`
	// Overlays has the entries of karpenter_node_overlays_config, in its order.
	Overlays []Overlay `json:"overlays,omitempty"`
	// Additional has the pools in the order of the parameter.
	Additional []Pool `json:"additional,omitempty"`
	// Refused has the sorted names of the parameters that have a problem. The Config holds defaults for them, and what
	// follows from such a default is not reported as a further problem.
	Refused []string `json:"-"`
}

// HasRefused reports whether a parameter has a problem, in which case the Config holds a default instead of the user's
// value.
func (c Config) HasRefused(parameter string) bool { return slices.Contains(c.Refused, parameter) }

// Pool holds the parameters of one NodePool and its EC2NodeClass.
type Pool struct {
	Name          string   `json:"name"`
	Families      []string `json:"families,omitempty"`
	Sizes         []string `json:"sizes,omitempty"`
	Arch          []string `json:"arch,omitempty"`
	CapacityTypes []string `json:"capacityTypes"`
	// CPULimit is in vCPU, MemoryLimitGB and Disk are in GiB. A Disk of 0 inherits the size.
	CPULimit      int `json:"cpuLimit"`
	MemoryLimitGB int `json:"memoryLimitGB"`
	Disk          int `json:"disk"`
	// ConsolidationPolicy is WhenEmptyOrUnderutilized or WhenEmpty.
	ConsolidationPolicy string `json:"consolidationPolicy"`
	// ConsolidateAfter and NodeExpiry are durations as written; NodeExpiry may be Never.
	ConsolidateAfter string `json:"consolidateAfter"`
	NodeExpiry       string `json:"nodeExpiry"`
	// DisruptionBudget is a number of nodes or a percentage. If empty, the NodePool has no budgets entry.
	DisruptionBudget string `json:"disruptionBudget,omitempty"`
	VolumeType       string `json:"volumeType"`
	// Weight 0 means no weight.
	Weight    int               `json:"weight,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Taints    []Taint           `json:"taints,omitempty"`
	Dedicated bool              `json:"dedicated,omitempty"`
	// OS is al2023 or bottlerocket. If AMI has the ID of an image, the nodes run that one.
	OS  string `json:"os,omitempty"`
	AMI string `json:"ami,omitempty"`
	// VolumeIOPS and VolumeThroughput are those of a gp3 volume. 0 is EC2's default, or the workload's if none is given.
	VolumeIOPS       int `json:"volumeIOPS,omitempty"`
	VolumeThroughput int `json:"volumeThroughput,omitempty"`
	// IMDSTokens and IMDSHops are of the instance metadata service. If empty and 0, they are the pool's defaults.
	IMDSTokens string            `json:"imdsTokens,omitempty"`
	IMDSHops   int               `json:"imdsHops,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	// Override is the pool's own config.
	Override Override `json:"override,omitzero"`
	// Given has the names of the fields that an entry of additional_karpenter_nodepools_config sets.
	Given []string `json:"given,omitempty"`
}

// Has reports whether an entry of additional_karpenter_nodepools_config sets a field.
func (p Pool) Has(field string) bool { return slices.Contains(p.Given, field) }

// Taint is a taint of a pool's nodes.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Has reports whether a parameter is written and valid.
func (c Config) Has(parameter string) bool {
	_, has := slices.BinarySearch(c.Given, parameter)
	return has
}

// Overrides returns the configs of all pools, with karpenter_defaults_config first.
func (c Config) Overrides() []Override {
	all := []Override{c.Defaults, c.Workload.Override, c.Build.Override}
	for _, p := range c.Additional {
		all = append(all, p.Override)
	}
	return all
}

// Override is a config of karpenter_config's form: JSON objects shaped like the specs of NodePool and EC2NodeClass, nil for an absent
// key. Numbers are int64 or float64, as in Kubernetes' unstructured objects. Null fields are left out.
type Override struct {
	NodePool     map[string]any `json:"nodePool,omitempty"`
	EC2NodeClass map[string]any `json:"ec2NodeClass,omitempty"`
}
