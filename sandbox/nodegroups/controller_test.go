package nodegroups

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// fakeEKS has the node groups of one cluster.
type fakeEKS map[string]*ekstypes.Nodegroup

func (f fakeEKS) ListNodegroups(context.Context, *eks.ListNodegroupsInput, ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error) {
	if f == nil {
		return nil, &ekstypes.ResourceNotFoundException{}
	}
	return &eks.ListNodegroupsOutput{Nodegroups: slices.Sorted(maps.Keys(f))}, nil
}

func (f fakeEKS) DescribeNodegroup(_ context.Context, in *eks.DescribeNodegroupInput,
	_ ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error) {
	return &eks.DescribeNodegroupOutput{Nodegroup: f[*in.NodegroupName]}, nil
}

// fakeEC2 has two subnets in two zones, and m5.large.
type fakeEC2 struct{ asked int }

func (f *fakeEC2) DescribeSubnets(_ context.Context, in *ec2.DescribeSubnetsInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	f.asked++
	out := &ec2.DescribeSubnetsOutput{}
	for _, id := range in.SubnetIds {
		out.Subnets = append(out.Subnets, ec2types.Subnet{SubnetId: &id, AvailabilityZone: aws.String("us-east-1" + id)})
	}
	return out, nil
}

func (f *fakeEC2) DescribeInstanceTypes(_ context.Context, in *ec2.DescribeInstanceTypesInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	f.asked++
	return &ec2.DescribeInstanceTypesOutput{InstanceTypes: []ec2types.InstanceTypeInfo{{
		InstanceType: in.InstanceTypes[0],
		VCpuInfo:     &ec2types.VCpuInfo{DefaultVCpus: aws.Int32(2)},
		MemoryInfo:   &ec2types.MemoryInfo{SizeInMiB: aws.Int64(8192)},
		NetworkInfo:  &ec2types.NetworkInfo{MaximumNetworkInterfaces: aws.Int32(3), Ipv4AddressesPerInterface: aws.Int32(10)},
	}}}, nil
}

func system(desired int32) *ekstypes.Nodegroup {
	return &ekstypes.Nodegroup{
		NodegroupName: aws.String("system"), Status: ekstypes.NodegroupStatusActive, CapacityType: ekstypes.CapacityTypesOnDemand,
		ScalingConfig: &ekstypes.NodegroupScalingConfig{DesiredSize: &desired},
		Subnets:       []string{"a", "b"}, InstanceTypes: []string{"m5.large"},
	}
}

// bed is a controller with its fakes and a clock that stands still.
type bed struct {
	*Controller
	eks    fakeEKS
	ec2    *fakeEC2
	client *fake.Clientset
	now    time.Time
}

func newBed(groups fakeEKS, objects ...runtime.Object) *bed {
	b := &bed{eks: groups, ec2: &fakeEC2{}, client: fake.NewClientset(objects...), now: time.Unix(1000, 0)}
	b.Controller = New(Config{
		Cluster: "demo", Region: "us-east-1", EKS: groups, EC2: b.ec2, Client: b.client,
		Now: func() time.Time { return b.now }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	return b
}

func (b *bed) reconcile(t *testing.T) []corev1.Node {
	t.Helper()
	if err := b.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	listed, err := b.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return listed.Items
}

// writes returns the number of writes since the last call.
func (b *bed) writes() int {
	number := 0
	for _, action := range b.client.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "get" {
			number++
		}
	}
	b.client.ClearActions()
	return number
}

func zoneCount(nodes []corev1.Node) map[string]int {
	count := map[string]int{}
	for _, node := range nodes {
		count[node.Labels[zoneLabel]]++
	}
	return count
}

func TestNodesAreMadeAndThenLeftAlone(t *testing.T) {
	b := newBed(fakeEKS{"system": system(4)})
	nodes := b.reconcile(t)
	if count := zoneCount(nodes); len(nodes) != 4 || count["us-east-1a"] != 2 || count["us-east-1b"] != 2 {
		t.Fatalf("%d nodes, in zones %v", len(nodes), count)
	}
	node := nodes[0]
	for key, want := range map[string]string{
		"eks.amazonaws.com/nodegroup": "system", "eks.amazonaws.com/capacityType": "ON_DEMAND",
		"node.kubernetes.io/instance-type": "m5.large", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"topology.kubernetes.io/region": "us-east-1", "kubernetes.io/hostname": node.Name,
	} {
		if node.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, node.Labels[key], want)
		}
	}
	if want := "aws:///" + node.Labels[zoneLabel] + "/" + node.Name[:19]; node.Spec.ProviderID != want {
		t.Errorf("provider id %q, want %q", node.Spec.ProviderID, want)
	}
	b.writes()
	asked := b.ec2.asked
	b.reconcile(t)
	if b.writes() != 0 || b.ec2.asked != asked {
		t.Error("the second run wrote, or asked EC2 again")
	}
}

func TestAllocatableIsThatOfEKS(t *testing.T) {
	node := newBed(fakeEKS{"system": system(1)}).reconcile(t)[0]
	// As m5.large nodes on EKS report, except for the last few MiB.
	cpu, pods, memory := node.Status.Allocatable.Cpu(), node.Status.Allocatable.Pods(), node.Status.Allocatable.Memory()
	if cpu.MilliValue() != 1930 || pods.Value() != 29 || memory.Value()/mib != 7067 {
		t.Errorf("cpu %s, pods %s, memory %s", cpu, pods, memory)
	}
}

func TestLabelsAndTaintsFollowTheGroup(t *testing.T) {
	g := system(1)
	g.Labels = map[string]string{"team": "a", "stays": "x"}
	g.Taints = []ekstypes.Taint{{Key: aws.String("dedicated"), Value: aws.String("build"), Effect: ekstypes.TaintEffectNoSchedule}}
	b := newBed(fakeEKS{"system": g})
	node := b.reconcile(t)[0]
	if want := (corev1.Taint{Key: "dedicated", Value: "build", Effect: corev1.TaintEffectNoSchedule}); len(node.Spec.Taints) != 1 ||
		node.Spec.Taints[0] != want {
		t.Fatalf("taints %v", node.Spec.Taints)
	}
	node.Labels["theirs"] = "kept"
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoExecute})
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), &node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	g.Labels, g.Taints = map[string]string{"stays": "x", "convox.io/system-node": "true"}, nil
	node = b.reconcile(t)[0]
	if node.Labels["convox.io/system-node"] != "true" || node.Labels["stays"] != "x" || node.Labels["theirs"] != "kept" ||
		node.Labels["team"] != "" {
		t.Errorf("labels %v", node.Labels)
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "theirs" {
		t.Errorf("taints %v", node.Spec.Taints)
	}
	b.writes()
	if b.reconcile(t); b.writes() != 0 {
		t.Error("the second run wrote")
	}
}

// evictions makes the fake API server delete an evicted pod, as the real one does together with a kubelet.
func (b *bed) evictions(allowed *bool) {
	b.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" || !*allowed {
			return action.GetSubresource() == "eviction", nil, nil
		}
		create := action.(clienttesting.CreateAction)
		meta := create.GetObject().(metav1.Object)
		return true, nil, b.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), meta.GetNamespace(), meta.GetName())
	})
}

func pod(name, node, owner string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", OwnerReferences: []metav1.OwnerReference{
			{Kind: owner, Name: "o", Controller: aws.Bool(true)},
		}},
		Spec: corev1.PodSpec{NodeName: node},
	}
}

func (b *bed) place(t *testing.T, p *corev1.Pod) {
	t.Helper()
	// The fake client does not filter by field, so only nodes that are drained may have pods.
	if _, err := b.client.CoreV1().Pods("shop").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestScaleInDrainsFirst(t *testing.T) {
	b, allowed := newBed(fakeEKS{"system": system(1)}), false
	b.evictions(&allowed)
	name := b.reconcile(t)[0].Name
	b.place(t, pod("web", name, "ReplicaSet"))
	b.place(t, pod("agent", name, "DaemonSet"))
	b.eks["system"].ScalingConfig.DesiredSize = aws.Int32(0)
	if nodes := b.reconcile(t); len(nodes) != 1 || !nodes[0].Spec.Unschedulable {
		t.Fatalf("after the first step: %+v", nodes)
	}
	if nodes := b.reconcile(t); len(nodes) != 1 {
		t.Fatal("the node has gone before its pod")
	}
	allowed = true
	b.reconcile(t)
	if nodes := b.reconcile(t); len(nodes) != 0 {
		t.Errorf("the empty node is still there")
	}
	if _, err := b.client.CoreV1().Pods("shop").Get(t.Context(), "agent", metav1.GetOptions{}); err != nil {
		t.Errorf("the DaemonSet's pod was evicted: %v", err)
	}
}

func TestDrainHasAnEnd(t *testing.T) {
	b, never := newBed(fakeEKS{"system": system(1)}), false
	b.evictions(&never)
	b.place(t, pod("web", b.reconcile(t)[0].Name, "ReplicaSet"))
	delete(b.eks, "system") // the nodes of a deleted group are drained the same way
	b.reconcile(t)
	if nodes := b.reconcile(t); len(nodes) != 1 {
		t.Fatal("the node has gone at once")
	}
	b.now = b.now.Add(patience + time.Second)
	if nodes := b.reconcile(t); len(nodes) != 0 {
		t.Error("the node is still there")
	}
}

func TestGrowingAgainTakesTheNodeBack(t *testing.T) {
	b, never := newBed(fakeEKS{"system": system(1)}), false
	b.evictions(&never)
	b.place(t, pod("web", b.reconcile(t)[0].Name, "ReplicaSet"))
	b.eks["system"].ScalingConfig.DesiredSize = aws.Int32(0)
	b.reconcile(t)
	b.eks["system"].ScalingConfig.DesiredSize = aws.Int32(1)
	if nodes := b.reconcile(t); len(nodes) != 1 || nodes[0].Spec.Unschedulable || isDraining(&nodes[0]) {
		t.Errorf("got %+v", nodes)
	}
}

func TestScaleInKeepsTheZonesBalanced(t *testing.T) {
	b := newBed(fakeEKS{"system": system(4)})
	b.reconcile(t)
	b.eks["system"].ScalingConfig.DesiredSize = aws.Int32(2)
	b.reconcile(t)
	if count := zoneCount(b.reconcile(t)); count["us-east-1a"] != 1 || count["us-east-1b"] != 1 {
		t.Errorf("left in zones %v", count)
	}
}

func TestOthersNodesAreLeftAlone(t *testing.T) {
	karpenters := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "k", Labels: map[string]string{"karpenter.sh/nodepool": "workload"}}}
	b := newBed(nil, karpenters) // the cluster does not exist yet
	if nodes := b.reconcile(t); len(nodes) != 1 || b.writes() != 0 {
		t.Errorf("got %+v", nodes)
	}
}
