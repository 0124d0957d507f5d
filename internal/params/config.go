package params

// Config is a rack's settings, typed. Every value is good; defaults are filled in.
type Config struct {
	Rack        string   `json:"rack"`
	ClusterName string   `json:"clusterName"`
	NodeTypes   []string `json:"nodeTypes,omitempty"`
	// NodeDisk is in GiB.
	NodeDisk int  `json:"nodeDisk"`
	Paused   bool `json:"paused,omitempty"`
	AuthMode bool `json:"authMode,omitempty"`
	Enabled  bool `json:"enabled,omitempty"`
	Workload Pool `json:"workload"`
}

// Pool is what the parameters say of one NodePool and its EC2NodeClass.
type Pool struct {
	Families      []string `json:"families,omitempty"`
	Sizes         []string `json:"sizes,omitempty"`
	Arch          []string `json:"arch,omitempty"`
	CapacityTypes []string `json:"capacityTypes"`
	// CPULimit is in vCPU, MemoryLimitGB and Disk are in GiB; a Disk of 0 inherits the rack's.
	CPULimit      int `json:"cpuLimit"`
	MemoryLimitGB int `json:"memoryLimitGB"`
	Disk          int `json:"disk"`
	// Consolidation chooses WhenEmptyOrUnderutilized, else WhenEmpty.
	Consolidation bool `json:"consolidation"`
	// ConsolidateAfter and NodeExpiry are durations as written; NodeExpiry may be Never.
	ConsolidateAfter string `json:"consolidateAfter"`
	NodeExpiry       string `json:"nodeExpiry"`
	DisruptionBudget string `json:"disruptionBudget"`
	VolumeType       string `json:"volumeType"`
}
