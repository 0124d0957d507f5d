package capacity

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

type object = map[string]any

// scene is a rack with two system nodes of 2 CPUs each, at most four, and a build group without nodes.
type scene struct {
	*testing.T
	cloud       *awsfake.Cloud
	api         *k8sfake.Server
	baselines   *awsfake.Recorder
	checkpoints *awsfake.Recorder
	step        *Step
	plan        *plan.Plan
}

func begin(t *testing.T) *scene {
	cloud, api := awsfake.New(), k8sfake.New(t)
	s := &scene{
		T: t, cloud: cloud, api: api, baselines: awsfake.NewBaselines(cloud), checkpoints: awsfake.NewCheckpoints(cloud),
		plan: &plan.Plan{
			Rack: "demo", Cluster: plan.Cluster{Name: "demo"}, Nodegroups: plan.Nodegroups{
				System: []string{"gone", "system"}, Build: []string{"build"},
			},
		},
	}
	s.step = &Step{EKS: cloud.EKS, Connect: api.Dial, Baselines: s.baselines, Checkpoints: s.checkpoints,
		Written: &store.Store{DB: cloud.Table}, Now: cloud.Now}
	cloud.EKS.Group("system", size(1, 2, 4), map[string]string{ownership.LabelSystemNode: "true"})
	build := cloud.EKS.Group("build", size(0, 0, 3), map[string]string{ownership.LabelBuild: "true"})
	build.Taints = []types.Taint{{Key: new("dedicated"), Value: new("build"), Effect: types.TaintEffectNoSchedule}}
	s.node("system-1", "2", in("system"))
	s.node("system-2", "2", in("system"))
	return s
}

func size(least, desired, most int32) types.NodegroupScalingConfig {
	return types.NodegroupScalingConfig{MinSize: &least, DesiredSize: &desired, MaxSize: &most}
}

func in(group string) object {
	return object{
		ownership.LabelNodeGroup: group, ownership.LabelSystemNode: "true", "kubernetes.io/os": "linux",
		"node.kubernetes.io/instance-type": "m6i.large",
	}
}

func of(pool string) object { return object{ownership.LabelPool: pool} }

// node adds a Ready node with that many CPUs. spec holds further fields of its spec. Kubernetes taints a node that is cordoned.
func (s *scene) node(name, cpu string, labels object, spec ...object) {
	fields := object{"metadata": object{"labels": labels, "creationTimestamp": s.cloud.Now().Format(time.RFC3339)}, "spec": object{},
		"status": object{
			"allocatable": object{"cpu": cpu, "memory": "8Gi", "pods": "20"}, "conditions": []any{
				object{"type": "Ready", "status": "True"},
			}}}
	for _, more := range spec {
		maps.Copy(fields["spec"].(object), more)
	}
	if fields["spec"].(object)["unschedulable"] == true {
		fields["spec"].(object)["taints"] = []any{object{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}}
	}
	s.api.Put("/api/v1/nodes/"+name, "v1", "Node", fields)
}

func (s *scene) pool(name, rack string) {
	labels := object{}
	if rack != "" {
		labels[ownership.TagRack] = rack
	}
	s.api.Put("/apis/karpenter.sh/v1/nodepools/"+name, "karpenter.sh/v1", "NodePool", object{"metadata": object{"labels": labels}})
}

// pod adds a running pod with that request. spec holds further fields of its spec.
func (s *scene) pod(name, node, cpu string, spec ...object) object {
	fields := object{"metadata": object{}, "status": object{"phase": "Running"}, "spec": object{"nodeName": node, "containers": []any{
		object{"name": "c", "resources": object{"requests": object{"cpu": cpu, "memory": "1Gi"}}}}}}
	for _, more := range spec {
		maps.Copy(fields["spec"].(object), more)
	}
	s.api.Put("/api/v1/namespaces/shop/pods/"+name, "v1", "Pod", fields)
	return fields
}

// karpenter adds nodes of the workload pool, each with one pod that requests that many CPUs.
func (s *scene) karpenter(pods ...string) {
	s.pool("workload", "demo")
	for i, cpu := range pods {
		s.node(fmt.Sprintf("k-%d", i), "4", of("workload"))
		s.pod(fmt.Sprintf("web-%d", i), fmt.Sprintf("k-%d", i), cpu)
	}
}

func (s *scene) call() (string, outcome.Progress, error) {
	s.Helper()
	return s.part("capacity")
}

func (s *scene) part(name string) (string, outcome.Progress, error) {
	s.Helper()
	progress, err := s.step.Run(s.Context(), s.plan, name)
	var changes []string
	for _, c := range progress.Changes {
		changes = append(changes, c.Subject+": "+c.Action)
	}
	return strings.Join(changes, "; "), progress, err
}

// passes checks that the step is done without a change and with this text in its warnings. "" means no warnings.
func (s *scene) passes(warning string) {
	s.Helper()
	s.cloud.Forget()
	changes, progress, err := s.call()
	if err != nil || progress.Wait != 0 || changes != "" || len(s.cloud.Writes())+len(s.api.Writes) > 0 {
		s.Fatalf("%s, %+v, %v, writes %v %v", changes, progress, err, s.cloud.Writes(), s.api.Writes)
	}
	s.warned(progress, warning)
}

func (s *scene) warned(progress outcome.Progress, warning string) {
	s.Helper()
	all := slices.Concat(progress.Incidents, progress.Warnings)
	if text := fmt.Sprint(all); (warning == "") != (len(all) == 0) || !strings.Contains(text, warning) {
		s.Errorf("warnings %s, want %q", text, warning)
	}
}

// asked checks that turning off may begin, and that nothing else is written.
func (s *scene) asked() {
	s.Helper()
	s.cloud.Forget()
	s.api.Writes = nil
	changes, progress, err := s.part("fit")
	if err != nil || progress.Wait != 0 || changes != "" || len(s.api.Writes) > 0 ||
		strings.Join(s.cloud.Writes(), " ") != "Checkpoints.Keep "+outcome.CheckpointOff {
		s.Fatalf("%s, %+v, %v, writes %v %v", changes, progress, err, s.cloud.Writes(), s.api.Writes)
	}
	delete(s.checkpoints.Kept, outcome.CheckpointOff)
}

// held checks that the part capacity waits, with these words and without a change: turning off has begun, so it is not
// rejected any more.
func (s *scene) held(words ...string) {
	s.Helper()
	s.cloud.Forget()
	changes, progress, err := s.call()
	if err != nil || progress.Wait != patience || changes != "" || len(s.cloud.Writes())+len(s.api.Writes) > 0 {
		s.Fatalf("%s, %+v, %v, writes %v %v", changes, progress, err, s.cloud.Writes(), s.api.Writes)
	}
	for _, word := range words {
		if !strings.Contains(progress.Note, word) {
			s.Errorf("no %q in: %s", word, progress.Note)
		}
	}
}

// refused checks that the part fit rejects with these words and writes nothing.
func (s *scene) refused(words ...string) {
	s.Helper()
	s.cloud.Forget()
	s.api.Writes = nil
	changes, _, err := s.part("fit")
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) || rejected.Problems[0].Parameter != "karpenter_enabled" || changes != "" ||
		len(s.cloud.Writes())+len(s.api.Writes) > 0 {
		s.Fatalf("%s, %v, writes %v %v", changes, err, s.cloud.Writes(), s.api.Writes)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			s.Errorf("no %q in: %v", word, err)
		}
	}
}

func (s *scene) sized(want string) {
	s.Helper()
	c := s.cloud.EKS.Groups["system"].ScalingConfig
	if got := fmt.Sprint(*c.MinSize, *c.DesiredSize, *c.MaxSize); got != want {
		s.Errorf("the system group is %s, want %s", got, want)
	}
}
