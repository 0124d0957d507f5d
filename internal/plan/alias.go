package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Variants of AMIs, by the devices of the instance types that they are for.
const (
	VariantStandard = "standard"
	VariantNVIDIA   = "nvidia"
	VariantNeuron   = "neuron"
)

// AliasImage is one of the AMIs behind an alias: the architecture and variant of the nodes that run it, and AWS's public
// parameter that has its ID.
type AliasImage struct{ Arch, Variant, Parameter string }

// BehindAlias returns the AMIs that Karpenter looks up for an alias of AL2023 or Bottlerocket under a version of Kubernetes, as
// DescribeImageQuery in al2023.go and bottlerocket.go of its pkg/providers/amifamily does, in all versions of the catalogue. An
// instance type without an AMI of its own is not launched, and Karpenter says so nowhere but in its log.
func BehindAlias(alias, kubernetes string) []AliasImage {
	family, version, _ := strings.Cut(alias, "@")
	if _, _, aged := AgedAlias(alias); aged {
		return nil
	}
	al2023 := func(arch, variant string) string {
		name := "recommended"
		if version != "latest" {
			name = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", arch, variant, kubernetes, version)
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", kubernetes, arch, variant, name)
	}
	bottlerocket := func(arch, variant string) string {
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, variant, arch, strings.TrimLeft(version, "v"))
	}
	switch family {
	case "al2023":
		return []AliasImage{
			{"amd64", VariantStandard, al2023("x86_64", VariantStandard)}, {"amd64", VariantNVIDIA, al2023("x86_64", VariantNVIDIA)},
			{"amd64", VariantNeuron, al2023("x86_64", VariantNeuron)},
			{"arm64", VariantStandard, al2023("arm64", VariantStandard)}, {"arm64", VariantNVIDIA, al2023("arm64", VariantNVIDIA)},
		}
	case "bottlerocket": // whose standard AMI for amd64 runs Neuron, too
		return []AliasImage{
			{"amd64", VariantStandard, bottlerocket("x86_64", "")}, {"amd64", VariantNVIDIA, bottlerocket("x86_64", "-nvidia")},
			{"amd64", VariantNeuron, bottlerocket("x86_64", "")},
			{"arm64", VariantStandard, bottlerocket("arm64", "")}, {"arm64", VariantNVIDIA, bottlerocket("arm64", "-nvidia")},
		}
	}
	return nil
}

// AgedAlias returns family and age of an alias such as al2023@latest-7d, and whether it is one: the newest release that has been out for
// so many days. Karpenter knows no such alias; Sawhorse finds the release (Facts.Aged).
func AgedAlias(alias string) (family string, age time.Duration, is bool) {
	family, version, _ := strings.Cut(alias, "@")
	number, is := strings.CutPrefix(strings.TrimSuffix(version, "d"), "latest-")
	days, err := strconv.Atoi(number)
	return family, time.Duration(days) * 24 * time.Hour, is && err == nil
}

// release matches the release in the name of one of Amazon's images: amazon-eks-node-al2023-x86_64-standard-1.35-v20260828,
// bottlerocket-aws-k8s-1.35-nvidia-aarch64-v1.44.0-0dfb3e3c.
var release = regexp.MustCompile(`-(v\d{8}|v\d+\.\d+\.\d+)(?:-[0-9a-f]+)?$`)

// ReleaseIn returns the release in the name of one of Amazon's images for nodes, or "".
func ReleaseIn(image string) string {
	if m := release.FindStringSubmatch(image); m != nil {
		return m[1]
	}
	return ""
}

// NewerRelease reports whether a release of AMIs is newer than another one: v20260828 than v20260821, v1.44.0 than v1.9.3.
func NewerRelease(a, b string) bool {
	one, other := strings.Split(strings.TrimPrefix(a, "v"), "."), strings.Split(strings.TrimPrefix(b, "v"), ".")
	for i := range min(len(one), len(other)) {
		x, _ := strconv.Atoi(one[i])
		if y, _ := strconv.Atoi(other[i]); x != y {
			return x > y
		}
	}
	return len(one) > len(other)
}
