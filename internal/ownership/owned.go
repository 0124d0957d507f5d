package ownership

import "maps"

// Tags returns the ownership tags of an AWS resource that Sawhorse makes for a rack and its cluster.
func Tags(rack, clusterARN string) map[string]string {
	return map[string]string{TagRack: rack, TagCluster: clusterARN}
}

// Owned reports whether an AWS resource has both ownership tags. Sawhorse changes and deletes no other: the rack's name
// alone may be in use in another region, whose racks share IAM.
func Owned(tags map[string]string, rack, clusterARN string) bool {
	return tags[TagRack] == rack && tags[TagCluster] == clusterARN
}

// LackingTags returns the wanted tags that a resource does not carry or carries with another value. It ignores all other
// tags: others may have set them, so no step ever removes a tag.
func LackingTags(live, wanted map[string]string) map[string]string {
	lacking := maps.Clone(wanted)
	maps.DeleteFunc(lacking, func(key, value string) bool {
		have, ok := live[key]
		return ok && have == value
	})
	return lacking
}

// OwnedObject reports whether an object in the cluster has the rack's label.
func OwnedObject(labels map[string]string, rack string) bool { return labels[TagRack] == rack }
