package ownership

// Tags returns the ownership tags of an AWS resource that Sawhorse makes for a rack and its cluster.
func Tags(rack, clusterARN string) map[string]string {
	return map[string]string{TagRack: rack, TagCluster: clusterARN}
}

// Owned reports whether an AWS resource has both ownership tags. Sawhorse changes and deletes no other: the rack's name
// alone may be in use in another region, whose racks share IAM.
func Owned(tags map[string]string, rack, clusterARN string) bool {
	return tags[TagRack] == rack && tags[TagCluster] == clusterARN
}

// OwnedObject reports whether an object in the cluster, or a Helm release, has the rack's label.
func OwnedObject(labels map[string]string, rack string) bool { return labels[TagRack] == rack }
