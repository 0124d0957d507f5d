package ownership

import (
	"crypto/sha256"
	"encoding/hex"
)

// TagReplaces is on a node group that Sawhorse made to replace another one, together with the ownership tags. Its value
// is the name of the replaced group.
const TagReplaces = "sawhorse.dev/replaces"

// maxNodeGroup is the longest name in characters that EKS accepts for a managed node group.
const maxNodeGroup = 63

// NodeGroupCopy returns the name of the on-demand copy of a SPOT node group. A name that is too long is cut and gets a
// hash of the whole name, so that names stay unique.
func NodeGroupCopy(group string) string {
	const suffix = "-ondemand"
	if len(group)+len(suffix) > maxNodeGroup {
		sum := sha256.Sum256([]byte(group))
		hash := "-" + hex.EncodeToString(sum[:4])
		group = group[:maxNodeGroup-len(suffix)-len(hash)] + hash
	}
	return group + suffix
}
