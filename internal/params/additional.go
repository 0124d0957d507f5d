package params

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// poolField is one field of an entry in additional_karpenter_nodepools_config.
type poolField struct {
	Name string `json:"name"`
	Value
	// Default is the text used for an absent field.
	Default string `json:"default,omitempty"`
	// Description is the text for the documentation.
	Description string `json:"description"`

	set func(*Pool, string) error
}

const maxPools = 100

// maxWeight is the largest weight that Karpenter accepts. A weight of 0 means no weight.
const maxWeight = 100

var poolName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// reservedPools are the names of Sawhorse's own pools, and names that would be misleading for another pool.
var reservedPools = []string{ownership.WorkloadPool, ownership.BuildPool, "default", "system"}

// poolFields lists all fields of an entry.
var poolFields = []poolField{
	{
		Name: "ami_id", Value: Value{Type: "text", Pattern: `ami-([0-9a-f]{8}|[0-9a-f]{17})`,
			Allowed: "the ID of an AMI: ami- and 17, or 8, of 0-9 and a-f", Example: "ami-0123456789abcdef0"},
		Description: "The AMI of the nodes, whose family is os.", set: setter(text, func(p *Pool) *string { return &p.AMI }),
	},
	{Name: "arch", Value: archValue, Default: "amd64", Description: "CPU architectures.",
		set: setter(list, func(p *Pool) *[]string { return &p.Arch })},
	{Name: "capacity_types", Value: capacityValue, Default: "on-demand", Description: "How the nodes are bought.",
		set: setter(list, func(p *Pool) *[]string { return &p.CapacityTypes })},
	{Name: "consolidate_after", Value: delayValue, Default: "30s", Description: "How long a node must be empty or underused.",
		set: setter(duration, func(p *Pool) *string { return &p.ConsolidateAfter })},
	{
		Name: "consolidation_policy", Value: Value{
			Type: "text", Pattern: whenEmpty + "|" + whenUnderutilized, Allowed: whenEmpty + " or " + whenUnderutilized, Example: whenEmpty,
			Words: []string{whenEmpty, whenUnderutilized},
		},
		Default: whenUnderutilized, Description: "Which nodes are consolidated.",
		set: setter(text, func(p *Pool) *string { return &p.ConsolidationPolicy }),
	},
	{Name: "cpu_limit", Value: positiveValue, Default: "100", Description: "Most vCPUs together.",
		set: setter(integer(maxInt), func(p *Pool) *int { return &p.CPULimit })},
	{Name: "dedicated", Value: boolValue, Default: "false", Description: "true adds the taint dedicated-node={name}:NoSchedule.",
		set: setter(boolean, func(p *Pool) *bool { return &p.Dedicated })},
	{Name: "disk", Value: countValue, Default: "0", Description: "EBS volume in GiB; 0 inherits the workload's.",
		set: setter(integer(maxInt), func(p *Pool) *int { return &p.Disk })},
	{Name: "disruption_budget_nodes", Value: budgetValue, Default: "10%", Description: "Most nodes disrupted at the same time.",
		set: setter(budget, func(p *Pool) *string { return &p.DisruptionBudget })},
	{Name: "instance_families", Value: familiesValue, Description: "EC2 instance families.",
		set: setter(list, func(p *Pool) *[]string { return &p.Families })},
	{Name: "instance_sizes", Value: sizesValue, Description: "EC2 instance sizes.",
		set: setter(list, func(p *Pool) *[]string { return &p.Sizes })},
	{Name: "labels", Value: labelsValue(reservedLabels), Description: "Labels, beside convox.io/nodepool={name}.",
		set: setter(labels(reservedLabels), func(p *Pool) *map[string]string { return &p.Labels })},
	{Name: "memory_limit_gb", Value: positiveValue, Default: "400", Description: "Most memory in GiB together.",
		set: setter(integer(maxInt), func(p *Pool) *int { return &p.MemoryLimitGB })},
	{
		Name: "name", Value: Value{
			Type: "text", Pattern: Pattern(poolName.String()[1 : len(poolName.String())-1]),
			Allowed: "a-z, 0-9 and dashes, at most 63, no dash at the ends; not " + strings.Join(reservedPools, ", "), Example: "gpu",
		},
		Description: "The pool's name; required.", set: setter(text, func(p *Pool) *string { return &p.Name }),
	},
	{Name: "node_expiry", Value: expiryValue, Default: "720h", Description: "How long a node may live.",
		set: setter(expiry, func(p *Pool) *string { return &p.NodeExpiry })},
	{Name: "os", Value: osValue, Default: "al2023", Description: "The operating system.",
		set: setter(text, func(p *Pool) *string { return &p.OS })},
	{Name: "tags", Value: tagsValue, Description: "AWS tags of the nodes, beside those of the parameter tags.",
		set: setter(tags, func(p *Pool) *map[string]string { return &p.Tags })},
	{Name: "taints", Value: taintsValue, Description: "Taints.", set: setter(taints, func(p *Pool) *[]Taint { return &p.Taints })},
	{Name: "volume_iops", Value: iopsValue, Description: "IOPS of the gp3 volume; 0 is EC2's default.",
		set: setter(integer(maxInt), func(p *Pool) *int { return &p.VolumeIOPS })},
	{Name: "volume_throughput", Value: throughputValue, Description: "Throughput of the gp3 volume in MiB/s; 0 is EC2's default.",
		set: setter(integer(maxInt), func(p *Pool) *int { return &p.VolumeThroughput })},
	{Name: "volume_type", Value: volumeTypeValue, Default: "gp3", Description: "EBS volume type.",
		set: setter(text, func(p *Pool) *string { return &p.VolumeType })},
	{
		Name: "weight", Value: Value{Type: "integer", Pattern: `0|[1-9][0-9]{0,2}`, Allowed: "an integer from 0 to 100", Example: "50"},
		Default: "0", Description: "Pools of a higher weight are tried first, among pools of equal weight those later in the alphabet; " +
			"0 is the same as none.",
		set: setter(integer(maxWeight), func(p *Pool) *int { return &p.Weight }),
	},
}

// additional reads additional_karpenter_nodepools_config.
func (r *Result) additional(objects map[string]Object) {
	value, given := r.document(ParamAdditional, objects)
	if !given {
		return
	}
	entries, ok := value.([]any)
	if !ok {
		r.problem(ParamAdditional, "",
			"%s is %s; allowed is a JSON array of pools; write, for example, [{\"name\":\"gpu\",\"instance_families\":\"g5\"}]",
			ParamAdditional, kindOf(value))
		return
	}
	if len(entries) > maxPools {
		r.problem(ParamAdditional, "", "%s has %d pools; allowed are %d; take out %d", ParamAdditional, len(entries), maxPools,
			len(entries)-maxPools)
		entries = entries[:maxPools]
	}
	seen := map[string]string{}
	for i, entry := range entries {
		at := fmt.Sprintf("[%d]", i)
		fields, is := entry.(map[string]any)
		pool := r.pool(at, fields)
		if is {
			r.poolName(at, pool.Name, fields["name"], seen)
		} else {
			r.problem(ParamAdditional, at, "pool %s is %s; allowed is an object; write, for example, {\"name\":\"gpu\"}", at, kindOf(entry))
			pool.Name = "refused" // a valid one
		}
		// A refused entry has its place in the Config too, because problems that are found later name the places.
		r.Config.Additional = append(r.Config.Additional, pool)
	}
}

// poolName refuses a name that is missing, reserved, or that of another entry.
func (r *Result) poolName(at, name string, written any, seen map[string]string) {
	first, twice := seen[name]
	switch {
	case written == nil || written == "":
		r.problem(ParamAdditional, Join(at, "name"), "pool %s has no name; write, for example, \"name\":\"gpu\"", at)
	case slices.Contains(reservedPools, name):
		r.problem(ParamAdditional, Join(at, "name"), "pool %s has the name %s, which is reserved (as %s are); choose another one", at,
			name, strings.Join(reservedPools, ", "))
	case twice && name != "":
		r.problem(ParamAdditional, Join(at, "name"), "pools %s and %s have the same name %s; names are unique; rename one of them",
			first, at, name)
	default:
		seen[name] = at
	}
}

// pool reads one entry, apart from what its name must be. A refused field gets its default value.
func (r *Result) pool(at string, fields map[string]any) Pool {
	var pool Pool
	var known []string
	for _, f := range poolFields {
		known = append(known, f.Name)
		value, given := fields[f.Name]
		if given && value != nil && value != "" {
			refusal := f.read(&pool, value)
			if refusal == "" {
				pool.Given = append(pool.Given, f.Name)
				continue
			}
			r.problem(ParamAdditional, Join(at, f.Name), "%s %s", Join(at, f.Name), refusal)
		}
		if f.Default != "" {
			if err := f.set(&pool, f.Default); err != nil {
				panic("params: default of " + f.Name + ": " + err.Error())
			}
		}
	}
	known = append(known, tops...)
	listed := false // the allowed fields are listed in one problem only
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, key) {
			continue
		}
		otherwise := "leave it out"
		if !listed && Nearest(key, known) == "" {
			listed, otherwise = true, "allowed are "+strings.Join(known, ", ")
		}
		r.problem(ParamAdditional, Join(at, key), "%s is no field of a pool; %s", Join(at, key), DidYouMean(key, known, otherwise))
	}
	r.poolTags(at, pool.Tags)
	pool.Override = r.own(at, fields, pool.Tags)
	return pool
}

// poolTags checks the tags of an entry together with those that all nodes have.
func (r *Result) poolTags(at string, tags map[string]string) {
	if len(tags) == 0 {
		return
	}
	all, seen := maps.Clone(tags), twins{}
	for _, key := range slices.Sorted(maps.Keys(r.Config.Tags)) {
		all[key] = ""
		seen.add(key)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Config.Defaults.tags())) {
		all[key] = ""
		seen.add(key)
	}
	at = Join(at, "tags")
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if twin := seen.add(key); twin != "" {
			r.problem(ParamAdditional, at, "%s has the tag %s, and the rack has %s: IAM takes both for one, and refuses them together; spell "+
				"them alike, or leave one out", at, Quoted(key), Quoted(twin))
		}
	}
	if len(all) > maxTags {
		r.problem(ParamAdditional, at, "%s and the rack's tags make %d tags; allowed are %d, because AWS takes 50 and Sawhorse and Karpenter "+
			"add theirs; take out %d", at, len(all), maxTags, len(all)-maxTags)
	}
}

// own reads the config of an entry.
func (r *Result) own(at string, fields map[string]any, tags map[string]string) Override {
	config := map[string]any{}
	for _, top := range tops {
		if value, given := fields[top]; given {
			config[top] = value
		}
	}
	s := source{Result: r, parameter: ParamAdditional, at: at, tags: slices.Collect(maps.Keys(tags))}
	return s.read(config, nil)
}

// read sets the field from a given value. It returns the rest of the sentence that refuses the value, or "".
func (f poolField) read(pool *Pool, value any) string {
	text, is := "", false
	switch v := value.(type) {
	case string:
		text, is = v, f.Type != "integer" && f.Type != "bool"
	case bool:
		text, is = fmt.Sprint(v), f.Type == "bool"
	case int64:
		text, is = fmt.Sprint(v), f.Type == "integer"
	}
	good := func(text string) bool { return f.matches(text) && f.set(&Pool{}, text) == nil }
	if !is {
		wanted := cmp.Or(map[string]string{"integer": "an integer", "bool": "true or false"}[f.Type], "text")
		instead := f.Example
		if text != "" && good(text) {
			instead = text // the same value with quotes, or without
		}
		if wanted == "text" {
			instead = strconv.Quote(instead)
		}
		return fmt.Sprintf("is %s, which is %s; allowed is %s; write, for example, %s", Shown(value), kindOf(value), wanted, instead)
	}
	return f.refusal(text, good, func() error { return f.set(pool, text) })
}
