package names

import (
	"crypto/sha256"
	"encoding/hex"
)

// TagReplaces is on a node group that Sawhorse made in the place of another one, beside the marks; its value is that one's
// name.
const TagReplaces = "sawhorse.dev/replaces"

// maxNodeGroup is the longest name that EKS takes for a managed node group.
const maxNodeGroup = 63

// NodeGroupCopy is the on-demand copy of a SPOT node group. A name that gets too long is cut, and a hash of the whole keeps
// two of them apart.
func NodeGroupCopy(group string) string {
	const suffix = "-ondemand"
	if len(group)+len(suffix) > maxNodeGroup {
		sum := sha256.Sum256([]byte(group))
		hash := "-" + hex.EncodeToString(sum[:4])
		group = group[:maxNodeGroup-len(suffix)-len(hash)] + hash
	}
	return group + suffix
}
