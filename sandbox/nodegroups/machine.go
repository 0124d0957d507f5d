package nodegroups

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const mib = 1 << 20

// machine is an instance type as a node sees it.
type machine struct {
	kind, arch            string
	capacity, allocatable corev1.ResourceList
}

// newMachine computes a node's capacity as EKS's AMIs do. The kernel and the hypervisor use about 5.5% of the memory.
// The number of pods follows from the number of addresses on the network interfaces. The kubelet's reservations depend
// on the number of cores and pods.
func newMachine(t ec2types.InstanceTypeInfo) machine {
	cpus := int64(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
	memory := aws.ToInt64(t.MemoryInfo.SizeInMiB) * 945 / 1000
	network := t.NetworkInfo
	pods := int64(aws.ToInt32(network.MaximumNetworkInterfaces)*(aws.ToInt32(network.Ipv4AddressesPerInterface)-1)) + 2
	m := machine{kind: string(t.InstanceType), arch: "amd64"}
	if t.ProcessorInfo != nil {
		for _, arch := range t.ProcessorInfo.SupportedArchitectures {
			if arch == ec2types.ArchitectureTypeArm64 {
				m.arch = "arm64"
			}
		}
	}
	m.capacity = resources(cpus*1000, memory, pods)
	m.allocatable = resources(cpus*1000-reservedCPU(cpus), memory-(255+11*pods)-100, pods)
	return m
}

// reservedCPU returns the kubelet's reservation in thousandths of a core: 6% of the first core, 1% of the second, 0.5%
// of the next two, 0.25% of the rest.
func reservedCPU(cpus int64) int64 {
	reserved := 60.0
	for core := int64(2); core <= cpus; core++ {
		switch {
		case core == 2:
			reserved += 10
		case core <= 4:
			reserved += 5
		default:
			reserved += 2.5
		}
	}
	return int64(reserved)
}

func resources(milliCPU, memoryMiB, pods int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memoryMiB*mib, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(20*1024*mib, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
	}
}
