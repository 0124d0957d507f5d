package nodes

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	scheduler "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// compiled returns the manifests of a rack with Karpenter on, and its NodePools as Karpenter reads them, in Karpenter's
// order.
func compiled(t *testing.T, written map[string]string) (Compiled, []*karpenter.NodePool) {
	t.Helper()
	texts := map[string]string{"node_type": "m6i.large"}
	maps.Copy(texts, written)
	compiled := Compile(configOf(t, texts), plan.Facts{})
	var pools []*karpenter.NodePool
	for _, object := range compiled.Objects() {
		text, err := json.Marshal(object)
		var pool karpenter.NodePool
		if err != nil || json.Unmarshal(text, &pool) != nil {
			t.Fatal(err, object)
		}
		if pool.Kind == "NodePool" {
			pools = append(pools, &pool)
		}
	}
	nodepool.OrderByWeight(pools)
	return compiled, pools
}

// The order of the pools must be the one that Karpenter's own code gives.
func TestPoolsAreTriedInKarpentersOrder(t *testing.T) {
	compiled, pools := compiled(t, map[string]string{
		"build_node_enabled": "true", "karpenter_config": `{"nodePool":{"weight":7}}`,
		"additional_karpenter_nodepools_config": `[{"name":"a"},{"name":"z"},{"name":"b","weight":7},{"name":"x","weight":7},` +
			`{"name":"c","weight":100},{"name":"z-1"},{"name":"z1"}]`,
	})
	var got, want []string
	for _, c := range candidates(compiled.drafts) {
		got = append(got, c.pool.name)
	}
	for _, pool := range pools {
		want = append(want, pool.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("tried %v; Karpenter has %v", got, want)
	}
}

// The warnings about unused pools must agree with Karpenter's scheduler. Each pod tolerates the taints of a pool, and
// requests what its instance types have.
func TestUnusedPoolsGetNoPods(t *testing.T) {
	gpu := corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}
	tenant := corev1.Toleration{Key: "dedicated-node", Operator: corev1.TolerationOpExists}
	const gpus, acme = `[{"name":"gpu","instance_families":"g5","taints":"nvidia.com/gpu=true:NoSchedule"}]`,
		`[{"name":"acme","dedicated":true}]`
	type texts = map[string]string
	for _, c := range []struct {
		what, more string
		workload   texts
		tolerates  corev1.Toleration
		gpus       string
		selects    texts
		want       string // the pool of the pod's node
		unused     bool   // whether a pool is reported as unused
	}{
		{"GPUs without a weight", gpus, nil, gpu, "1", nil, "workload", true},
		{"one that asks for the pool", gpus, nil, gpu, "1", texts{"convox.io/nodepool": "gpu"}, "gpu", true},
		{"GPUs with a weight", `[{"name":"gpu","instance_families":"g5","taints":"nvidia.com/gpu=true:NoSchedule","weight":10}]`, nil,
			gpu, "1", nil, "gpu", false},
		{"a workload pool without GPUs", gpus, texts{"karpenter_instance_families": "m6i"}, gpu, "1", nil, "gpu", false},
		{"a workload pool whose limit lets in no GPUs", gpus,
			texts{"karpenter_config": `{"nodePool":{"limits":{"cpu":"100","memory":"400Gi","nvidia.com/gpu":"0"}}}`}, gpu, "1", nil, "gpu", false},
		{"a tenant without a label", acme, nil, tenant, "0", nil, "workload", true},
		{"a tenant with a label, which its pods select", `[{"name":"acme","dedicated":true,"labels":"tenant=acme"}]`, nil, tenant,
			"0", texts{"tenant": "acme"}, "acme", false},
		{"a workload pool with a taint", acme, texts{"karpenter_node_taints": "amd.com/gpu:NoSchedule"}, tenant, "0", nil, "acme", false},
		{"a name that is later in the alphabet", `[{"name":"zeta"}]`, nil, corev1.Toleration{Key: "none"}, "0", nil, "zeta", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			written := texts{"additional_karpenter_nodepools_config": c.more}
			maps.Copy(written, c.workload)
			compiled, all := compiled(t, written)
			if got := launches(t, all, pod(c.tolerates, c.gpus, c.selects)); got != c.want {
				t.Errorf("NodePool %q launches its node, want %q", got, c.want)
			}
			if got := compiled.Unused(); (len(got) > 0) != c.unused {
				t.Errorf("said to be unused: %v", got)
			}
		})
	}
}

func pod(tolerates corev1.Toleration, gpus string, selects map[string]string) *corev1.Pod {
	requests := corev1.ResourceList{"cpu": resource.MustParse("1")}
	if gpus != "0" {
		requests["nvidia.com/gpu"] = resource.MustParse(gpus)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "shop", UID: "a"},
		Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{tolerates}, NodeSelector: selects,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}
}

// launches returns the NodePool that Karpenter's scheduler launches a node from for a pod. There are two instance
// types, one of them with a GPU.
func launches(t *testing.T, pools []*karpenter.NodePool, pod *corev1.Pod) string {
	t.Helper()
	ctx := options.ToContext(t.Context(), &options.Options{})
	types := map[string][]*cloudprovider.InstanceType{}
	for _, p := range pools {
		types[p.Name] = []*cloudprovider.InstanceType{instanceType("m6i.xlarge", "0"), instanceType("g5.xlarge", "1")}
	}
	cluster := state.NewCluster(clock.RealClock{}, nil, nil)
	topology, err := scheduler.NewTopology(ctx, nil, cluster, nil, pools, types, []*corev1.Pod{pod})
	if err != nil {
		t.Fatal(err)
	}
	results, err := scheduler.NewScheduler(ctx, nil, pools, cluster, nil, topology, types, nil, deaf{}, clock.RealClock{},
		nil).Solve(ctx, []*corev1.Pod{pod})
	if err != nil || len(results.NewNodeClaims) != 1 {
		t.Fatal(err, results.PodErrors)
	}
	return results.NewNodeClaims[0].NodePoolName
}

func instanceType(name, gpus string) *cloudprovider.InstanceType {
	family, size, _ := strings.Cut(name, ".")
	labels := map[string]string{
		keyType: name, keyFamily: family, keySize: size, keyArch: "amd64", keyCapacity: "on-demand",
		"topology.kubernetes.io/zone": "eu-central-1a", "kubernetes.io/os": "linux",
	}
	return &cloudprovider.InstanceType{
		Name: name, Requirements: scheduling.NewLabelRequirements(labels), Overhead: &cloudprovider.InstanceTypeOverhead{},
		Offerings: cloudprovider.Offerings{{Requirements: scheduling.NewLabelRequirements(labels), Price: 1, Available: true}},
		Capacity: corev1.ResourceList{
			"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("50"),
			"nvidia.com/gpu": resource.MustParse(gpus),
		},
	}
}

// deaf discards events.
type deaf struct{}

func (deaf) Publish(...events.Event) {}
