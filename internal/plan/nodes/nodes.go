// Package nodes makes the manifests of a rack's NodePools and EC2NodeClasses from Karpenter's own Go types. It is apart
// from package plan because those types add 4 MB and 20 ms to whatever imports them: only validate and the command do.
package nodes

import (
	"encoding/json"
	"fmt"
	"strings"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Compile makes the manifests that a config asks for, EC2NodeClasses before NodePools, each kind by name; none where
// Karpenter is off.
func Compile(config params.Config, facts plan.Facts) ([]plan.Object, error) {
	if !config.Enabled {
		return nil, nil
	}
	class, err := manifest(nodeClass(config))
	if err != nil {
		return nil, fmt.Errorf("EC2NodeClass/%s: %w", names.WorkloadPool, err)
	}
	pool, err := manifest(nodePool(config, plan.Arch(config, facts)))
	if err != nil {
		return nil, fmt.Errorf("NodePool/%s: %w", names.WorkloadPool, err)
	}
	return []plan.Object{class, pool}, nil
}

func nodePool(config params.Config, arch []string) any {
	w := config.Workload
	policy := karpenter.ConsolidationPolicyWhenEmpty
	if w.Consolidation {
		policy = karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized
	}
	return &karpenter.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"},
		ObjectMeta: objectMeta(config.Rack),
		Spec: karpenter.NodePoolSpec{
			Template: karpenter.NodeClaimTemplate{
				ObjectMeta: karpenter.ObjectMeta{Labels: map[string]string{names.LabelNodePool: names.WorkloadPool}},
				Spec: karpenter.NodeClaimTemplateSpec{
					Requirements: requirements(w, arch),
					NodeClassRef: &karpenter.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: names.WorkloadPool},
					ExpireAfter:  karpenter.MustParseNillableDuration(w.NodeExpiry),
				},
			},
			Limits: karpenter.Limits(corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewQuantity(int64(w.CPULimit), resource.DecimalSI),
				corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dGi", w.MemoryLimitGB)),
			}),
			Disruption: karpenter.Disruption{
				ConsolidationPolicy: policy,
				ConsolidateAfter:    karpenter.MustParseNillableDuration(w.ConsolidateAfter),
				Budgets:             []karpenter.Budget{{Nodes: w.DisruptionBudget}},
			},
		},
	}
}

// requirements hold one entry for each parameter that gives one; capacity type and architecture always do.
func requirements(pool params.Pool, arch []string) []karpenter.NodeSelectorRequirementWithMinValues {
	var all []karpenter.NodeSelectorRequirementWithMinValues
	for _, r := range []struct {
		key    string
		values []string
	}{
		{karpenter.CapacityTypeLabelKey, pool.CapacityTypes},
		{corev1.LabelArchStable, arch},
		{ec2.LabelInstanceFamily, pool.Families},
		{ec2.LabelInstanceSize, pool.Sizes},
	} {
		if len(r.values) > 0 {
			all = append(all, karpenter.NodeSelectorRequirementWithMinValues{Key: r.key, Operator: corev1.NodeSelectorOpIn, Values: r.values})
		}
	}
	return all
}

func nodeClass(config params.Config) any {
	discovery := map[string]string{names.TagDiscovery: config.ClusterName}
	size := config.Workload.Disk
	if size == 0 {
		size = config.NodeDisk
	}
	return &ec2.EC2NodeClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.k8s.aws/v1", Kind: "EC2NodeClass"},
		ObjectMeta: objectMeta(config.Rack),
		Spec: ec2.EC2NodeClassSpec{
			AMISelectorTerms:           []ec2.AMISelectorTerm{{Alias: "al2023@latest"}},
			Role:                       names.NodeRole(config.Rack),
			SubnetSelectorTerms:        []ec2.SubnetSelectorTerm{{Tags: discovery}},
			SecurityGroupSelectorTerms: []ec2.SecurityGroupSelectorTerm{{Tags: discovery}},
			BlockDeviceMappings: []*ec2.BlockDeviceMapping{{
				DeviceName: new("/dev/xvda"),
				EBS: &ec2.BlockDevice{
					Encrypted:  new(true),
					VolumeSize: new(resource.MustParse(fmt.Sprintf("%dGi", size))),
					VolumeType: new(config.Workload.VolumeType),
				},
			}},
			MetadataOptions: &ec2.MetadataOptions{
				HTTPEndpoint:            new("enabled"),
				HTTPTokens:              new("required"),
				HTTPPutResponseHopLimit: new(int64(1)),
			},
			Tags: map[string]string{
				names.TagName:       names.NodeName(config.Rack, names.WorkloadPool),
				names.TagRackOfNode: config.Rack,
			},
		},
	}
}

func objectMeta(rack string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: names.WorkloadPool, Labels: map[string]string{names.TagRack: rack}}
}

// manifest turns a typed object into what server-side apply takes. It goes through JSON because the unstructured converter
// writes NillableDuration in base64; status and nulls go because apply would claim the one and refuse the other.
func manifest(typed any) (plan.Object, error) {
	text, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var object plan.Object
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	delete(object, "status")
	prune(object)
	return object, nil
}

// prune removes nulls, and creationTimestamp's among them, at every depth.
func prune(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
				continue
			}
			prune(inner)
		}
	case []any:
		for _, inner := range v {
			prune(inner)
		}
	}
}
