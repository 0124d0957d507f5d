package params

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// source is where a config stands: a JSON object with the keys nodePool and ec2NodeClass. It is a whole parameter or, at a path in
// it, an entry of additional_karpenter_nodepools_config.
type source struct {
	*Result
	parameter, at string
	// tags are the keys of the tags that the nodes have beside the config's.
	tags []string
}

// path returns a path of the config as a path in the parameter's JSON.
func (s source) path(keys ...string) string { return Join(s.at, keys...) }

// refuse adds a problem at a path in the parameter's JSON. Its message begins with the path.
func (s source) refuse(at, format string, args ...any) {
	s.problem(s.parameter, at, "%s %s", at, fmt.Sprintf(format, args...))
}

// protectedField is a field of a config that is refused whatever its value is.
type protectedField struct {
	path []string
	why  string
}

var nodeLabels = []string{"nodePool", "template", "metadata", "labels"}

// protectedFields are the fields that Sawhorse sets itself, in every pool.
var protectedFields = []protectedField{
	{[]string{"ec2NodeClass", "role"}, "Sawhorse makes the nodes' role; further policies go into node_policy_arns"},
	{[]string{"ec2NodeClass", "instanceProfile"}, "Karpenter makes the instance profile of the nodes' role"},
	{[]string{"ec2NodeClass", "subnetSelectorTerms"}, "subnets are chosen by subnet_ids"},
	{[]string{"ec2NodeClass", "securityGroupSelectorTerms"}, "security groups are chosen by security_group_ids"},
	{[]string{"nodePool", "template", "spec", "nodeClassRef"}, "the pool belongs to the EC2NodeClass of its name"},
	{append(nodeLabels[:4:4], ownership.LabelNodePool), "Sawhorse sets it to the pool's name"},
	{append(nodeLabels[:4:4], ownership.LabelSystemNode), "it marks the system nodes, which Karpenter does not manage"},
}

// WhyProtected returns why a field of a parameter's config is protected, or "". In the field's path [] stands for each element of a
// list.
func WhyProtected(parameter, path string) string {
	fields := protectedFields
	if parameter == ParamDefaults {
		fields = slices.Concat(fields, protectedOfDefaults)
	}
	for _, field := range fields {
		if strings.Join(field.path, ".") == path {
			return field.why
		}
	}
	if path == "ec2NodeClass.blockDeviceMappings[].ebs.snapshotID" {
		return ofAnybody
	}
	return ""
}

// protectedOfBuild and protectedOfDefaults are those that karpenter_build_config and karpenter_defaults_config may not set besides.
var (
	protectedOfBuild = []protectedField{
		{append(nodeLabels[:4:4], ownership.LabelBuild), "it marks the build nodes"},
	}
	protectedOfDefaults = []protectedField{
		{[]string{"nodePool", "replicas"}, "it would make every pool static; write it in the config of one pool"},
		{[]string{"nodePool", "limits"}, "limits are each pool's own; write karpenter_cpu_limit, karpenter_memory_limit_gb, or cpu_limit and " +
			"memory_limit_gb of a pool"},
		{[]string{"nodePool", "weight"}, "pools of one weight are no order; write it in the config of one pool"},
	}
)

// sections are the objects in a config whose fields are merged. If present, each must be an object.
var sections = [][]string{
	{"nodePool"}, {"nodePool", "template"}, {"nodePool", "template", "metadata"}, {"nodePool", "template", "metadata", "labels"},
	{"nodePool", "template", "spec"}, {"nodePool", "limits"}, {"nodePool", "disruption"}, {"ec2NodeClass"}, {"ec2NodeClass", "tags"},
}

// wholes maps the kinds of manifests that users write by mistake to the keys of a config.
var wholes = map[string]string{"NodePool": "nodePool", "EC2NodeClass": "ec2NodeClass"}

// overrides reads karpenter_defaults_config, karpenter_config and karpenter_build_config. Unknown fields and wrong values are found
// later, when the Karpenter objects are made.
func (r *Result) overrides(objects map[string]Object) {
	r.Config.Defaults = r.override(ParamDefaults, slices.Concat(protectedOfBuild, protectedOfDefaults), objects)
	r.Config.Workload.Override = r.override(ParamOverride, nil, objects)
	r.Config.Build.Override = r.override(ParamBuildConfig, protectedOfBuild, objects)
}

// override reads a parameter that is a config.
func (r *Result) override(name string, protected []protectedField, objects map[string]Object) (none Override) {
	value, given := r.document(name, objects)
	if !given {
		return none
	}
	config, ok := value.(map[string]any)
	if !ok {
		r.problem(name, "", "%s is %s; allowed is a JSON object with the keys nodePool and ec2NodeClass; "+
			"write, for example, {\"nodePool\":{\"weight\":50}}", name, kindOf(value))
		return none
	}
	if kind, _ := config["kind"].(string); config["spec"] != nil && wholes[kind] != "" {
		r.problem(name, "", "%s is a whole manifest of kind %s; allowed is a JSON object with the keys nodePool and ec2NodeClass; "+
			"write {%q: …} with the fields of its spec", name, kind, wholes[kind])
		return none
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if !slices.Contains(tops, key) {
			r.problem(name, Join("", key), "%s has the key %s; allowed are nodePool and ec2NodeClass; %s",
				name, Quoted(key), DidYouMean(key, tops, "delete it"))
			delete(config, key)
		}
	}
	return source{Result: r, parameter: name}.read(config, protected)
}

// tops are the keys of a config.
var tops = []string{"nodePool", "ec2NodeClass"}

// read checks a config, and takes out what is refused.
func (s source) read(config map[string]any, protected []protectedField) (made Override) {
	s.tags = slices.Concat(s.tags, slices.Collect(maps.Keys(s.Config.Tags)), slices.Collect(maps.Keys(s.Config.Defaults.tags())))
	s.sections(config)
	s.protected(slices.Concat(protectedFields, protected), config)
	s.reservedRequirements(config)
	if s.parameter != ParamOverride && s.parameter != ParamAdditional { // those of the workload and of an entry may be as they like
		s.reservedTaints(config)
	}
	s.protectedTags(config)
	prune(config, true)
	s.windows(config)
	s.snapshots(config)
	made.NodePool, _ = config["nodePool"].(map[string]any)
	made.EC2NodeClass, _ = config["ec2NodeClass"].(map[string]any)
	return made
}

// tags returns the tags of the ec2NodeClass.
func (o Override) tags() map[string]any {
	tags, _ := o.EC2NodeClass["tags"].(map[string]any)
	return tags
}

// sections refuses sections that are not objects, and removes them so that the rest can be checked.
func (s source) sections(config map[string]any) {
	for _, path := range sections {
		parent, key := parentOf(config, path)
		value, there := parent[key]
		if _, object := value.(map[string]any); !there || object {
			continue
		}
		s.refuse(s.path(path...), "is %s; allowed is an object; leave it out to keep the defaults", kindOf(value))
		delete(parent, key)
	}
	spec, key := parentOf(config, []string{"nodePool", "template", "spec", "requirements"})
	if list, ok := spec[key].([]any); ok && len(list) == 0 {
		s.problem(s.parameter, s.path("nodePool", "template", "spec", "requirements"),
			"requirements is empty, which would let Karpenter launch any instance; leave it out to keep what the parameters say, "+
				"or list at least one requirement")
		delete(spec, key)
	}
}

// protected refuses protected fields and removes them.
func (s source) protected(fields []protectedField, value map[string]any) {
	for _, field := range fields {
		parent, key := parentOf(value, field.path)
		if _, there := parent[key]; there {
			s.refuse(s.path(field.path...), "is protected: %s; leave it out", field.why)
			delete(parent, key)
		}
	}
}

// reservedRequirements refuses requirements of which Karpenter would make the labels that Sawhorse sets.
func (s source) reservedRequirements(config map[string]any) {
	spec, _ := parentOf(config, []string{"nodePool", "template", "spec", ""})
	reserved := reservedLabels
	if s.parameter == ParamBuildConfig || s.parameter == ParamDefaults { // by which the build nodes are told from others
		reserved = reservedBuildLabels
	}
	for i, requirement := range entries(spec["requirements"]) {
		if key, _ := requirement["key"].(string); slices.Contains(reserved, key) {
			s.refuse(fmt.Sprintf("%s[%d].key", s.path("nodePool", "template", "spec", "requirements"), i),
				"is %s, which is reserved: Karpenter makes a label of it, and Sawhorse sets that one; leave the requirement out", key)
		}
	}
}

// reservedTaints refuses taints of the key that build nodes have one of.
func (s source) reservedTaints(config map[string]any) {
	spec, _ := parentOf(config, []string{"nodePool", "template", "spec", ""})
	for _, list := range []string{"taints", "startupTaints"} {
		for i, taint := range entries(spec[list]) {
			if taint["key"] == ownership.TaintBuild {
				s.refuse(fmt.Sprintf("%s[%d].key", s.path("nodePool", "template", "spec", list), i),
					"is %s, which is reserved: Sawhorse gives every build node the taint %s=%s:NoSchedule; leave the taint out",
					ownership.TaintBuild, ownership.TaintBuild, ownership.BuildPool)
				delete(spec, list)
			}
		}
	}
}

// taggable matches what IAM takes in the keys and values of tags (its API reference, Tag), and NUL, which is refused by itself.
var taggable = regexp.MustCompile(`^[\x00\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

// protectedTags refuses tags that Sawhorse sets itself, and tags that AWS does not accept.
func (s source) protectedTags(config map[string]any) {
	tags, _ := parentOf(config, []string{"ec2NodeClass", "tags", ""})
	// Karpenter also puts these tags on its instance profile, together with the rack's tags.
	all, seen := map[string]bool{}, twins{}
	for _, key := range slices.Sorted(slices.Values(s.tags)) {
		all[key] = true
		seen.add(key)
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		at, why := s.path("ec2NodeClass", "tags", key), ""
		switch lower := strings.ToLower(key); {
		case strings.EqualFold(key, ownership.TagName) || strings.EqualFold(key, ownership.TagRackOfNode):
			why = "Sawhorse sets the tags " + ownership.TagName + " and " + ownership.TagRackOfNode + " of every node"
		case strings.HasPrefix(lower, "aws:"):
			why = "keys with aws: are AWS's own"
		case strings.HasPrefix(lower, "sawhorse.dev/"):
			why = "by such tags Sawhorse knows what it made"
		}
		if why != "" {
			s.refuse(at, "is protected: %s; use another key", why)
			delete(tags, key)
			continue
		}
		switch value, _ := tags[key].(string); {
		case tooLong(key, value):
			s.problem(s.parameter, at,
				"the tag %s in ec2NodeClass.tags is too long: AWS takes 128 characters of a key and 256 of a value; write fewer",
				Quoted(key))
		case !taggable.MatchString(key + value):
			s.warning(s.parameter, at, "the tag %s in ec2NodeClass.tags is %s, and IAM, whose instance profile gets it when the pool is made, "+
				"takes letters, digits, spaces and _.:/=+-@ in a tag; a new pool would not become Ready; write others", Quoted(key), Quoted(value))
		}
		if twin := seen.add(key); twin != "" {
			s.refuse(at, "and the tag %s are one to IAM, which refuses both together; spell them alike, or leave one out", Quoted(twin))
		}
		all[key] = true
	}
	if len(all) > maxTags && len(tags) > 0 {
		s.problem(s.parameter, s.path("ec2NodeClass", "tags"),
			"ec2NodeClass.tags and the parameter tags make %d tags; allowed are %d, "+
				"because AWS takes 50 and Sawhorse and Karpenter add theirs; take out %d", len(all), maxTags, len(all)-maxTags)
	}
}

// parentOf returns the object that holds the last part of a path, or nil if there is none.
func parentOf(config map[string]any, path []string) (parent map[string]any, key string) {
	parent = config
	for _, part := range path[:len(path)-1] {
		parent, _ = parent[part].(map[string]any)
	}
	return parent, path[len(path)-1]
}

// ownKeys are the sections whose keys the user chooses. There an empty text is a valid value.
var ownKeys = []string{"labels", "annotations", "tags"}

// prune removes fields that are null and, with texts, fields that are an empty text, because both mean absent.
func prune(value any, texts bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil || inner == "" && texts {
				delete(v, key)
				continue
			}
			prune(inner, texts && !slices.Contains(ownKeys, key))
		}
	case []any:
		for _, inner := range v {
			prune(inner, texts)
		}
	}
}

// windows refuses Windows AMI families, because the nodes' access entry is of type EC2_LINUX.
func (s source) windows(config map[string]any) {
	class, _ := config["ec2NodeClass"].(map[string]any)
	refuse := func(in map[string]any, key, at string) {
		text, _ := in[key].(string)
		if !strings.HasPrefix(strings.ToLower(text), "windows") {
			return
		}
		s.refuse(at, "is %s, and Karpenter's nodes of a rack run Linux: their access entry lets no Windows node join; "+
			"write a Linux family like al2023@latest or bottlerocket@latest, or leave it out", Quoted(text))
	}
	refuse(class, "amiFamily", s.path("ec2NodeClass", "amiFamily"))
	for i, term := range entries(class["amiSelectorTerms"]) {
		refuse(term, "alias", fmt.Sprintf("%s[%d].alias", s.path("ec2NodeClass", "amiSelectorTerms"), i))
	}
}

// maxImageTerms is how many amiSelectorTerms Karpenter's CRD takes.
const maxImageTerms = 30

// Images returns what pools name: the IDs of images, and the parameters that have the ID of one. It ignores terms that the CRD
// refuses for their number, so that nobody is asked about thousands of them.
func (c Config) Images() (ids, parameters []string) {
	for _, override := range c.Overrides() {
		terms := entries(override.EC2NodeClass["amiSelectorTerms"])
		for _, term := range terms[:min(len(terms), maxImageTerms)] {
			if id, _ := term["id"].(string); id != "" {
				ids = append(ids, id)
			} else if name, _ := term["ssmParameter"].(string); name != "" {
				parameters = append(parameters, name)
			}
		}
	}
	for _, pool := range c.Additional {
		if pool.AMI != "" {
			ids = append(ids, pool.AMI)
		}
	}
	return ids, parameters
}

// SelectsImages reports whether a pool selects its AMIs itself, so that karpenter_ami_alias does not.
func (c Config) SelectsImages(pool string) bool {
	of := map[string]Pool{ownership.WorkloadPool: c.Workload, ownership.BuildPool: c.Build}
	for _, p := range c.Additional {
		of[p.Name] = p
	}
	return of[pool].AMI != "" || of[pool].Override.EC2NodeClass["amiSelectorTerms"] != nil
}

// Aliases returns the aliases of AMIs that are written.
func (c Config) Aliases() (aliases []string) {
	for _, family := range slices.Sorted(maps.Keys(c.AMIAliases)) {
		aliases = append(aliases, c.AMIAliases[family])
	}
	for _, override := range c.Overrides() {
		terms := entries(override.EC2NodeClass["amiSelectorTerms"])
		for _, term := range terms[:min(len(terms), maxImageTerms)] {
			if alias, _ := term["alias"].(string); alias != "" {
				aliases = append(aliases, alias)
			}
		}
	}
	return aliases
}

// NamedFamilies returns the instance families that pools name, sorted.
func (c Config) NamedFamilies() []string {
	var all []string
	for _, pool := range append([]Pool{c.Workload, c.Build}, c.Additional...) {
		all = append(all, pool.Families...)
	}
	for _, override := range c.Overrides() {
		template, _ := override.NodePool["template"].(map[string]any)
		spec, _ := template["spec"].(map[string]any)
		for _, requirement := range entries(spec["requirements"]) {
			if requirement["key"] != labelFamily || requirement["operator"] != "In" {
				continue
			}
			values, _ := requirement["values"].([]any)
			for _, value := range values {
				if family, is := value.(string); is {
					all = append(all, family)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// labelFamily is Karpenter's label for the instance family of a node.
const labelFamily = "karpenter.k8s.aws/instance-family"

// Reserved returns the IDs of capacity reservations that pools name, and the IDs and names of placement groups.
func (c Config) Reserved() (reservations, groups []string) {
	for _, override := range c.Overrides() {
		for _, term := range entries(override.EC2NodeClass["capacityReservationSelectorTerms"]) {
			if id, _ := term["id"].(string); id != "" {
				reservations = append(reservations, id)
			}
		}
		group, _ := override.EC2NodeClass["placementGroupSelector"].(map[string]any)
		for _, by := range []string{"id", "name"} {
			if value, _ := group[by].(string); value != "" {
				groups = append(groups, value)
			}
		}
	}
	return reservations, groups
}

// ofAnybody says why snapshots are refused.
const ofAnybody = "a snapshot may hold anybody's data, and pods would read it"

// snapshots refuses volumes that are created from a snapshot. A snapshot may hold anyone's data, and whoever writes the
// rack's parameters could read it on a node.
func (s source) snapshots(config map[string]any) {
	class, _ := config["ec2NodeClass"].(map[string]any)
	for i, disk := range entries(class["blockDeviceMappings"]) {
		ebs, _ := disk["ebs"].(map[string]any)
		if _, there := ebs["snapshotID"]; there {
			s.refuse(fmt.Sprintf("%s[%d].ebs.snapshotID", s.path("ec2NodeClass", "blockDeviceMappings"), i),
				"is protected: %s; leave it out, and put what nodes need into an AMI of your own (amiSelectorTerms)", ofAnybody)
		}
	}
}
