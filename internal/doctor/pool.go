package doctor

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
)

// pool is what the checks use of a NodePool and its EC2NodeClass. They are those of the plan, so that what
// karpenter_config changes counts.
type pool struct {
	name         string
	limits       map[string]any
	taints       []corev1.Taint
	requirements []corev1.NodeSelectorRequirement
	nodeClass
}

type nodeClass struct {
	AMISelectorTerms    []imageTerm
	BlockDeviceMappings []struct {
		EBS struct{ KMSKeyID string }
	}
	MetadataOptions struct{ HTTPPutResponseHopLimit int64 }
}

// imageTerm selects AMIs.
type imageTerm struct {
	Alias, SSMParameter, ID, Name string
	Tags                          map[string]string
}

// pools returns the pools of the plan. What a pass would refuse of their values is left out.
func (o *Observed) pools() (pools []pool) {
	classes := map[string]nodeClass{}
	for _, object := range nodes.Compile(o.Config, o.facts()).Objects() { // the EC2NodeClasses come first
		text, _ := json.Marshal(object)
		var read struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				nodeClass
				Limits   map[string]any
				Template struct {
					Spec struct {
						Taints       []corev1.Taint
						Requirements []corev1.NodeSelectorRequirement
					}
				}
			}
		}
		_ = json.Unmarshal(text, &read) // decodes as much as it can
		name := read.Metadata.Name
		switch read.Kind {
		case "EC2NodeClass":
			classes[name] = read.Spec.nodeClass
		case "NodePool":
			pools = append(pools, pool{
				name, read.Spec.Limits, read.Spec.Template.Spec.Taints, read.Spec.Template.Spec.Requirements, classes[name],
			})
		}
	}
	return pools
}

// launches reports whether the pool may launch nodes of a capacity type.
func (p pool) launches(capacityType string) bool {
	return !slices.ContainsFunc(p.requirements, func(r corev1.NodeSelectorRequirement) bool {
		return r.Key == "karpenter.sh/capacity-type" && slices.Contains(r.Values, capacityType) != (r.Operator == corev1.NodeSelectorOpIn)
	})
}

// vCPU returns the limit of the pool's vCPUs; 0 if it has none.
func (p pool) vCPU() int {
	limit, err := resource.ParseQuantity(fmt.Sprint(p.limits["cpu"]))
	if err != nil {
		return 0
	}
	return int(limit.Value())
}

// VolumeKeys returns the KMS keys that pools name for their volumes.
func (o *Observed) VolumeKeys() (ids []string) {
	for _, p := range o.pools() {
		for _, mapping := range p.BlockDeviceMappings {
			if id := mapping.EBS.KMSKeyID; id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
