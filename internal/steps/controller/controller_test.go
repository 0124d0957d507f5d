package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/charts"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

var ctx = context.Background()

// scene holds a cluster, the step and a plan.
type scene struct {
	*testing.T
	*k8stest.Cluster
	step        *Step
	plan        *plan.Plan
	checkpoints *awsfake.Recorder
	// store has the rack's records.
	store *store.Store
	eks   *awsfake.EKS
	clock time.Time
}

const principal = "arn:aws:iam::123456789012:role/Sawhorse-controller"

// begin returns a cluster without a controller. It has the rack's CRDs or none: see defined and undefined.
func begin(t *testing.T) *scene {
	cluster := k8stest.New(t)
	cloud := awsfake.New()
	s := &scene{T: t, Cluster: cluster, eks: cloud.EKS, checkpoints: awsfake.NewCheckpoints(cloud),
		store: &store.Store{DB: cloud.Table, Name: "sawhorse"},
		clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		plan:  wanted(params.Config{HighAvailability: true})}
	if err := s.store.SaveRecords(ctx, "demo", plan.Records{WasOn: true}); err != nil {
		t.Fatal(err)
	}
	s.step = s.as(cluster.Config)
	t.Cleanup(func() {
		if s.uninstall(); t.Failed() {
			s.undefined() // nobody knows what it has left
		}
	})
	return s
}

// as returns the step with the identity of a client configuration.
func (s *scene) as(config *rest.Config) *Step {
	now := func() time.Time { return s.clock }
	self := admin.Function{Name: "controller", Principal: principal, EKS: s.eks, Now: now}
	connect := func(context.Context, plan.Cluster) (*k8s.Client, error) { return k8s.New("test", config) }
	return &Step{Connect: connect, Checkpoints: s.checkpoints, Contests: awsfake.NewContests(), Versions: s.store, Self: self, Now: now}
}

// defined runs the CRDs' part until the API server has established them. Those that another test has installed stay: the API server
// holds the first object of a kind back for 2 s after the kind's CRD, and works long on each CRD that comes or goes.
func (s *scene) defined() {
	s.Helper()
	progress, err := s.step.Run(ctx, s.plan, PartCRDs)
	if err != nil {
		s.Fatal(err)
	}
	if len(progress.Changes) > 0 && progress.Changes[0] != (outcome.Change{Action: "installed", Subject: "release karpenter-crd 1.10.0"}) {
		s.Fatalf("an earlier test has left other CRDs: %+v", progress)
	}
	if record := s.record(); record.CRDs != "1.10.0" {
		s.Fatalf("an earlier test has left other CRDs: %+v", record)
	}
	if progress.Wait > 0 {
		s.settle()
	}
}

// undefined removes the CRDs, for tests that install them, or that leave others than defined expects.
func (s *scene) undefined() {
	s.Helper()
	versions := karpenter.All()
	for _, name := range versions[len(versions)-1].CRDNames {
		k8stest.Eventually(s.T, func() bool {
			// Remove the finalizer on each try. While the definition's storage is new, the API server retries its own
			// clean-up ever more rarely, and that can take minutes. No objects are left that it would have to delete.
			s.Remove(crd(name))
			return s.Get(crd(name)) == nil
		})
	}
}

// uninstall deletes the controller's objects as somebody who has all rights.
func (s *scene) uninstall() {
	s.Helper()
	client, err := s.step.Connect(ctx, s.plan.Cluster)
	if err == nil {
		_, err = (&run{Step: s.step, plan: &plan.Plan{Rack: "demo"}, client: client}).prune(ctx, nil)
	}
	if err != nil {
		s.Error(err)
	}
}

// wanted returns the plan of a rack with Karpenter and these settings, for a cluster that serves further APIs.
func wanted(config params.Config, apis ...string) *plan.Plan {
	config.Rack, config.ClusterName, config.AuthMode, config.Enabled = "demo", "demo", true, true
	made := plan.Build(config, plan.Facts{
		Cluster:     &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo", Partition: "aws"}, Status: "ACTIVE"},
		PodIdentity: true, Subnets: []plan.Tagged{{ID: "subnet-a"}}, NodeGroups: []plan.NodeGroup{{Name: "system"}},
	}, nil)
	if len(made.Problems) > 0 {
		panic(fmt.Sprint(made.Problems))
	}
	render(&made.Plan, apis...)
	return &made.Plan
}

// render adds the charts' objects to a plan, as a pass does, and as a step reads them.
func render(p *plan.Plan, apis ...string) {
	err := charts.Add(p, plan.Facts{APIs: apis})
	if err == nil {
		var text []byte
		if text, err = json.Marshal(p); err == nil {
			*p = plan.Plan{}
			err = json.Unmarshal(text, p)
		}
	}
	if err != nil {
		panic(err)
	}
}

func crd(name string) k8stest.Object {
	return k8stest.Object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name}}
}

var deployment = k8stest.Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "karpenter",
	"namespace": "kube-system"}}

func node(name, zone string) k8stest.Object {
	return k8stest.Object{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name,
		"labels": map[string]any{ownership.LabelSystemNode: "true", "topology.kubernetes.io/zone": zone}}}
}

// run runs one part and compares its changes.
func (s *scene) run(part string, want ...string) outcome.Progress {
	s.Helper()
	progress, err := s.step.Run(ctx, s.plan, part)
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, change := range progress.Changes {
		got = append(got, change.Action+" "+change.Subject)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Fatalf("%s changed %q, want %q", part, got, want)
	}
	return progress
}

// settle runs the CRDs' part until the API server has established them.
func (s *scene) settle() {
	s.Helper()
	k8stest.Eventually(s.T, func() bool {
		progress, err := s.step.Run(ctx, s.plan, PartCRDs)
		if err != nil {
			s.Fatal(err)
		}
		return progress.Wait == 0
	})
}

// versions returns the resourceVersions of all objects of Karpenter, by name.
func (s *scene) versions() string {
	var all []string
	for _, resource := range []string{"/v1/serviceaccounts", "/v1/services", "apps/v1/deployments",
		"rbac.authorization.k8s.io/v1/clusterroles",
		"rbac.authorization.k8s.io/v1/roles", "policy/v1/poddisruptionbudgets", "apiextensions.k8s.io/v1/customresourcedefinitions"} {
		part := strings.SplitN(resource, "/", 3)
		for _, object := range s.List(part[0], part[1], part[2]) {
			if strings.Contains(object.GetName(), "karpenter") {
				all = append(all, object.GetName()+"="+object.GetResourceVersion())
			}
		}
	}
	return strings.Join(all, " ")
}

func TestInstallUpgradeRepairRemove(t *testing.T) {
	s := begin(t)
	s.undefined()
	s.Create(node("one", "us-east-1a"))

	t.Log("installs the CRDs, to be kept, and then does nothing")
	s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
	s.settle()
	if got := s.Get(crd("nodepools.karpenter.sh")).GetAnnotations()["helm.sh/resource-policy"]; got != "keep" {
		t.Errorf("the CRDs' resource policy is %q", got)
	}

	t.Log("installs the controller, and waits for its pods")
	progress := s.run(PartRelease, "installed release karpenter 1.10.0")
	if progress.Wait == 0 || !strings.Contains(progress.Note, "Deployment/kube-system/karpenter: ") {
		t.Errorf("progress %+v", progress)
	}
	if len(progress.Warnings) != 1 || progress.Warnings[0].Parameter != "high_availability" {
		t.Errorf("one zone and the warnings %v", progress.Warnings)
	}
	s.check(1)
	s.RolledOut(deployment)
	if progress := s.run(PartRelease); progress.Wait != 0 || progress.Outputs["karpenter_version"] != "1.10.0" {
		t.Errorf("progress %+v", progress)
	}

	t.Log("second run does nothing")
	before := s.versions()
	s.run(PartCRDs)
	s.run(PartRelease)
	if after := s.versions(); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}

	t.Log("a second zone makes it two replicas")
	s.Create(node("two", "us-east-1b"))
	if progress := s.run(PartRelease, "updated Deployment/kube-system/karpenter"); len(progress.Incidents) != 0 {
		t.Errorf("warnings %v", progress.Incidents)
	}
	s.check(2)

	t.Log("repairs what was deleted or changed")
	s.Remove(k8stest.Object{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "karpenter",
		"namespace": "kube-system"}})
	s.Change(deployment, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas")
	})
	repaired := s.run(PartRelease, "created Service/kube-system/karpenter", "updated Deployment/kube-system/karpenter")
	if len(repaired.Incidents) != 1 {
		t.Errorf("warnings %v", repaired.Incidents)
	}
	s.check(2)

	t.Log("removes the controller and keeps the CRDs, never before our EC2NodeClasses have gone")
	s.plan.Controller.Release.Present = false
	for _, left := range []k8stest.Object{class, claim} { // while one of these is left, the controller stays
		s.Create(left)
		if progress := s.run(PartRelease); progress.Wait == 0 || !strings.Contains(progress.Note, left["kind"].(string)+"/") ||
			s.Get(deployment) == nil {
			t.Errorf("progress %+v", progress)
		}
		s.Remove(left)
	}
	s.run(PartRelease, "uninstalled release karpenter")
	if left := s.left(); len(left) > 0 || s.Get(crd("nodepools.karpenter.sh")) == nil {
		t.Errorf("of the controller %v is there, or the CRDs are not", left)
	}
	if progress := s.run(PartRelease); progress.Wait != 0 {
		t.Errorf("progress %+v", progress)
	}
	s.run(PartCRDs)
}

// left returns the objects of the controller's chart that there are.
func (s *scene) left() (all []string) {
	s.Helper()
	for _, object := range s.plan.Controller.Release.Objects {
		if live := s.Get(object); live != nil {
			all = append(all, k8s.Subject(live))
		}
	}
	return all
}

func (s *scene) check(replicas int64) {
	s.Helper()
	live := s.Get(deployment)
	if live == nil || live.GetLabels()[ownership.TagRack] != "demo" {
		s.Fatalf("Deployment %v", live)
	}
	typed, err := k8s.As[appsv1.Deployment](live)
	if err != nil {
		s.Fatal(err)
	}
	pod, container := typed.Spec.Template, typed.Spec.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, variable := range container.Env {
		env[variable.Name] = variable.Value
	}
	got := fmt.Sprintln(*typed.Spec.Replicas, container.Image, container.Resources.Requests.Cpu(), container.Resources.Requests.Memory(),
		pod.Spec.NodeSelector[ownership.LabelSystemNode], pod.Annotations["karpenter.sh/do-not-disrupt"], env["CLUSTER_NAME"],
		env["INTERRUPTION_QUEUE"])
	want := fmt.Sprintln(replicas, "public.ecr.aws/karpenter/controller:1.10.0@"+karpenter.Default().Digest, "200m", "256Mi",
		"true", "true", "demo", "demo-karpenter")
	if got != want {
		s.Fatalf("Deployment %s, want %s", got, want)
	}
}

// In a private cluster the image comes from a mirror, with the same digest, and the controller does not call services
// that have no VPC endpoint.
func TestPrivateClusterAndOneReplica(t *testing.T) {
	s := begin(t)
	s.Create(node("one", "us-east-1a"))
	s.Create(node("two", "us-east-1b"))
	s.plan = wanted(params.Config{})
	s.defined()
	if progress := s.run(PartRelease, "installed release karpenter 1.10.0"); len(progress.Warnings) > 0 {
		t.Errorf("one replica was asked for, and the warnings %v", progress.Warnings)
	}
	s.check(1)
	if got := s.variable("ISOLATED_VPC"); got != "" {
		t.Errorf("ISOLATED_VPC=%s", got)
	}
	const mirror = "123456789012.dkr.ecr.us-east-1.amazonaws.com/mirror/karpenter"
	s.plan = wanted(params.Config{ImageRepository: mirror, IsolatedVPC: true})
	s.run(PartRelease, "updated Deployment/kube-system/karpenter")
	live := s.container()
	if got, want := live.Image, mirror+":1.10.0@"+karpenter.Default().Digest; got != want {
		t.Errorf("image %s, want %s", got, want)
	}
	if got := s.variable("ISOLATED_VPC"); got != "true" {
		t.Errorf("ISOLATED_VPC=%q", got)
	}
	s.run(PartRelease)
	s.plan = wanted(params.Config{})
	s.run(PartRelease, "updated Deployment/kube-system/karpenter")
	s.check(1)
}

func (s *scene) container() corev1.Container {
	s.Helper()
	typed, err := k8s.As[appsv1.Deployment](s.Get(deployment))
	if err != nil {
		s.Fatal(err)
	}
	return typed.Spec.Template.Spec.Containers[0]
}

func (s *scene) variable(name string) string {
	s.Helper()
	for _, variable := range s.container().Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

// A call that is stopped before any of its writes leaves the rest to the next one.
func TestRecoversFromBeingKilled(t *testing.T) {
	s := begin(t)
	s.defined()
	for writes := 0; writes < len(s.plan.Controller.Release.Objects); writes += stride() {
		if err := s.stoppedAfter(writes, PartRelease); !outcome.IsNotYet(err, outcome.Unready) {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		if got := len(s.left()); got != writes {
			t.Fatalf("after %d writes %d objects are there", writes, got)
		}
		if _, err := s.step.Run(ctx, s.plan, PartRelease); err != nil {
			t.Fatal(err)
		}
		s.check(1)
		s.run(PartRelease)
		t.Log("a removal too")
		s.plan.Controller.Release.Present = false
		if err := s.stoppedAfter(writes, PartRelease); !outcome.IsNotYet(err, outcome.Unready) {
			t.Fatalf("a removal, after %d writes: %v", writes, err)
		}
		if _, err := s.step.Run(ctx, s.plan, PartRelease); err != nil || len(s.left()) > 0 {
			t.Fatalf("a removal, after %d writes: %v, %v", writes, err, s.left())
		}
		s.plan.Controller.Release.Present = true
	}
}

// stride is how many writes further on a test stops a call the next time, if it stops one at each write.
func stride() int {
	if testing.Short() {
		return 8
	}
	return 1
}

// stoppedAfter runs a part with an API server that fails after some writes.
func (s *scene) stoppedAfter(writes int, part string) error {
	config := rest.CopyConfig(s.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return stopping{next, func() bool { return true }, &writes}
	})
	_, err := s.as(config).Run(ctx, s.plan, part)
	return err
}

// A plan that an earlier version of Sawhorse has made has no objects: nothing is deleted because of it.
func TestAPlanWithoutObjects(t *testing.T) {
	s := begin(t)
	s.defined()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	before := s.versions()
	s.plan.Controller.Release.Objects = nil
	for _, step := range []*Step{s.step, s.audited()} {
		_, err := step.Run(ctx, s.plan, PartRelease)
		if err == nil || !strings.Contains(err.Error(), "there is no plan of format 2 with its objects") {
			t.Errorf("%v", err)
		}
	}
	if after := s.versions(); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
}

// Another chart of the CRDs' version than the plan's: the step applies its own, and is not done.
func TestAPlanWithAnotherChart(t *testing.T) {
	s := begin(t)
	s.undefined()
	s.plan.Controller.CRDs.Chart = "sha256:another"
	if progress := s.run(PartCRDs, "installed release karpenter-crd 1.10.0"); !progress.Unfinished {
		t.Errorf("%+v", progress)
	}
	s.plan.Controller.CRDs.Version = "1.9.0"
	if _, err := s.step.Run(ctx, s.plan, PartCRDs); err != nil { // older ones never replace those that are installed
		t.Error(err)
	}
	s.plan.Controller.CRDs.Version = "9.0.0"
	if _, err := s.step.Run(ctx, s.plan, PartCRDs); err == nil || !strings.Contains(err.Error(), "the next pass makes a new plan") {
		t.Errorf("%v", err)
	}
}
