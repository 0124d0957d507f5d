package params

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// protectedField is a field of a JSON parameter that is refused whatever its value is.
type protectedField struct {
	path []string
	why  string
}

// protectedFields are the fields of karpenter_config that Sawhorse sets itself.
var protectedFields = []protectedField{
	{[]string{"ec2NodeClass", "role"}, "Sawhorse makes the nodes' role; further policies go into node_policy_arns"},
	{[]string{"ec2NodeClass", "instanceProfile"}, "Karpenter makes the instance profile of the nodes' role"},
	{[]string{"ec2NodeClass", "subnetSelectorTerms"}, "subnets are chosen by subnet_ids"},
	{[]string{"ec2NodeClass", "securityGroupSelectorTerms"}, "security groups are chosen by security_group_ids"},
	{[]string{"nodePool", "template", "spec", "nodeClassRef"}, "the pool belongs to the EC2NodeClass of its name"},
	// Kubernetes refuses to change an existing pool from dynamic to static capacity, or back.
	{[]string{"nodePool", "replicas"},
		"static capacity is an alpha feature of Karpenter that Sawhorse does not switch on; use limits and weight"},
	{[]string{"nodePool", "template", "metadata", "labels", ownership.LabelNodePool}, "Sawhorse sets it to the pool's name"},
	{[]string{"nodePool", "template", "metadata", "labels", ownership.LabelSystemNode},
		"it marks the system nodes, which Karpenter does not manage"},
}

// sections are the objects in karpenter_config whose fields are merged. If present, each must be an object.
var sections = [][]string{
	{"nodePool"}, {"nodePool", "template"}, {"nodePool", "template", "metadata"}, {"nodePool", "template", "metadata", "labels"},
	{"nodePool", "template", "spec"}, {"nodePool", "limits"}, {"nodePool", "disruption"}, {"ec2NodeClass"}, {"ec2NodeClass", "tags"},
}

// wholes maps the kinds of manifests that users write by mistake to the keys of karpenter_config.
var wholes = map[string]string{"NodePool": "nodePool", "EC2NodeClass": "ec2NodeClass"}

// override reads karpenter_config. Unknown fields and wrong values are found later, when the Karpenter objects are
// made.
func (r *Result) override(objects map[string]Object) {
	value, given := r.document(ParamOverride, objects)
	if !given {
		return
	}
	config, ok := value.(map[string]any)
	if !ok {
		r.problem(ParamOverride, "", "%s is %s; allowed is a JSON object with the keys nodePool and ec2NodeClass; "+
			"write, for example, {\"nodePool\":{\"weight\":50}}", ParamOverride, kindOf(value))
		return
	}
	if kind, _ := config["kind"].(string); config["spec"] != nil && wholes[kind] != "" {
		r.problem(ParamOverride, "", "%s is a whole manifest of kind %s; allowed is a JSON object with the keys nodePool and ec2NodeClass; "+
			"write {%q: …} with the fields of its spec", ParamOverride, kind, wholes[kind])
		return
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if top := []string{"nodePool", "ec2NodeClass"}; !slices.Contains(top, key) {
			r.problem(ParamOverride, Join("", key), "%s has the key %s; allowed are nodePool and ec2NodeClass; %s",
				ParamOverride, Quoted(key), DidYouMean(key, top, "delete it"))
			delete(config, key)
		}
	}
	r.sections(config)
	r.protected(ParamOverride, protectedFields, config)
	r.reservedRequirements(config)
	r.protectedTags(config)
	prune(config, true)
	r.windows(config)
	r.snapshots(config)
	r.Config.Override.NodePool, _ = config["nodePool"].(map[string]any)
	r.Config.Override.EC2NodeClass, _ = config["ec2NodeClass"].(map[string]any)
}

// sections refuses sections that are not objects, and removes them so that the rest can be checked.
func (r *Result) sections(config map[string]any) {
	for _, path := range sections {
		parent, key := parentOf(config, path)
		value, there := parent[key]
		if _, object := value.(map[string]any); !there || object {
			continue
		}
		r.problem(ParamOverride, strings.Join(path, "."), "%s is %s; allowed is an object; leave it out to keep the defaults",
			strings.Join(path, "."), kindOf(value))
		delete(parent, key)
	}
	spec, key := parentOf(config, []string{"nodePool", "template", "spec", "requirements"})
	if list, ok := spec[key].([]any); ok && len(list) == 0 {
		r.problem(ParamOverride, "nodePool.template.spec.requirements",
			"requirements is empty, which would let Karpenter launch any instance; leave it out to keep what the parameters say, "+
				"or list at least one requirement")
		delete(spec, key)
	}
}

// protected refuses protected fields of a parameter and removes them.
func (r *Result) protected(parameter string, fields []protectedField, value map[string]any) {
	for _, field := range fields {
		parent, key := parentOf(value, field.path)
		if _, there := parent[key]; there {
			at := Join("", field.path...)
			r.problem(parameter, at, "%s is protected: %s; leave it out", at, field.why)
			delete(parent, key)
		}
	}
}

// reservedRequirements refuses requirements of which Karpenter would make the labels that Sawhorse sets.
func (r *Result) reservedRequirements(config map[string]any) {
	spec, _ := parentOf(config, []string{"nodePool", "template", "spec", ""})
	requirements, _ := spec["requirements"].([]any)
	for i, entry := range requirements {
		requirement, _ := entry.(map[string]any)
		if key, _ := requirement["key"].(string); slices.Contains(reservedLabels, key) {
			at := fmt.Sprintf("nodePool.template.spec.requirements[%d].key", i)
			r.problem(ParamOverride, at, "%s is %s, which is reserved: Karpenter makes a label of it, and Sawhorse sets that one; "+
				"leave the requirement out", at, key)
		}
	}
}

// protectedTags refuses tags that Sawhorse sets itself, and tags that AWS does not accept.
func (r *Result) protectedTags(config map[string]any) {
	tags, _ := parentOf(config, []string{"ec2NodeClass", "tags", ""})
	// Karpenter also puts these tags on its instance profile, together with the rack's tags.
	all, seen := map[string]bool{}, twins{}
	for _, key := range slices.Sorted(maps.Keys(r.Config.Tags)) {
		all[key] = true
		seen.add(key)
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		at, why := Join("ec2NodeClass.tags", key), ""
		switch lower := strings.ToLower(key); {
		case strings.EqualFold(key, ownership.TagName) || strings.EqualFold(key, ownership.TagRackOfNode):
			why = "Sawhorse sets the tags " + ownership.TagName + " and " + ownership.TagRackOfNode + " of every node"
		case strings.HasPrefix(lower, "aws:"):
			why = "keys with aws: are AWS's own"
		case strings.HasPrefix(lower, "sawhorse.dev/"):
			why = "by such tags Sawhorse knows what it made"
		}
		if why != "" {
			r.problem(ParamOverride, at, "%s is protected: %s; use another key", at, why)
			delete(tags, key)
			continue
		}
		if value, _ := tags[key].(string); tooLong(key, value) {
			r.problem(ParamOverride, at,
				"the tag %s in ec2NodeClass.tags is too long: AWS takes 128 characters of a key and 256 of a value; write fewer",
				Quoted(key))
		}
		if twin := seen.add(key); twin != "" {
			r.problem(ParamOverride, at,
				"%s and the tag %s are one to IAM, which refuses both together; spell them alike, or leave one out", at, Quoted(twin))
		}
		all[key] = true
	}
	if len(all) > maxTags && len(tags) > 0 {
		r.problem(ParamOverride, "ec2NodeClass.tags",
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
func (r *Result) windows(config map[string]any) {
	class, _ := config["ec2NodeClass"].(map[string]any)
	terms, _ := class["amiSelectorTerms"].([]any)
	refuse := func(in map[string]any, key, at string) {
		text, _ := in[key].(string)
		if !strings.HasPrefix(strings.ToLower(text), "windows") {
			return
		}
		r.problem(ParamOverride, at,
			"%s is %s, and Karpenter's nodes of a rack run Linux: their access entry lets no Windows node join; "+
				"write a Linux family like al2023@latest or bottlerocket@latest, or leave it out",
			at, Quoted(text))
	}
	refuse(class, "amiFamily", "ec2NodeClass.amiFamily")
	for i, entry := range terms {
		term, _ := entry.(map[string]any)
		refuse(term, "alias", fmt.Sprintf("ec2NodeClass.amiSelectorTerms[%d].alias", i))
	}
}

// maxImageTerms is how many amiSelectorTerms Karpenter's CRD takes.
const maxImageTerms = 30

// Images returns what the amiSelectorTerms name: the IDs of images, and the parameters that have the ID of one. It ignores
// terms that the CRD refuses for their number, so that nobody is asked about thousands of them.
func (o Override) Images() (ids, parameters []string) {
	terms, _ := o.EC2NodeClass["amiSelectorTerms"].([]any)
	for _, entry := range terms[:min(len(terms), maxImageTerms)] {
		term, _ := entry.(map[string]any)
		if id, _ := term["id"].(string); id != "" {
			ids = append(ids, id)
		} else if name, _ := term["ssmParameter"].(string); name != "" {
			parameters = append(parameters, name)
		}
	}
	return ids, parameters
}

// snapshots refuses volumes that are created from a snapshot. A snapshot may hold anyone's data, and whoever writes the
// rack's parameters could read it on a node.
func (r *Result) snapshots(config map[string]any) {
	class, _ := config["ec2NodeClass"].(map[string]any)
	disks, _ := class["blockDeviceMappings"].([]any)
	for i, entry := range disks {
		disk, _ := entry.(map[string]any)
		ebs, _ := disk["ebs"].(map[string]any)
		if _, there := ebs["snapshotID"]; there {
			at := fmt.Sprintf("ec2NodeClass.blockDeviceMappings[%d].ebs.snapshotID", i)
			r.problem(ParamOverride, at, "%s is protected: a snapshot may hold anybody's data, and pods would read it; "+
				"leave it out, and put what nodes need into an AMI of your own (amiSelectorTerms)", at)
		}
	}
}
