package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
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
	helm        *helm
	checkpoints *awsfake.Recorder
	// store has the rack's records.
	store *store.Store
	eks   *awsfake.EKS
	clock time.Time
}

const principal = "arn:aws:iam::123456789012:role/Sawhorse-controller"

func begin(t *testing.T) *scene {
	cluster := k8stest.New(t)
	helm, err := newHelm(cluster.Config, "demo")
	if err != nil {
		t.Fatal(err)
	}
	cloud := awsfake.New()
	s := &scene{T: t, Cluster: cluster, eks: cloud.EKS, helm: helm, checkpoints: awsfake.NewCheckpoints(cloud),
		store: &store.Store{DB: cloud.Table, Name: "sawhorse"},
		clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		plan:  wanted(params.Config{HighAvailability: true})}
	if err := s.store.SaveRecords(ctx, "demo", plan.Records{WasOn: true}); err != nil {
		t.Fatal(err)
	}
	s.step = s.as(cluster.Config)
	t.Cleanup(s.end)
	return s
}

// as returns the step with the identity of a client configuration.
func (s *scene) as(config *rest.Config) *Step {
	now := func() time.Time { return s.clock }
	self := admin.Function{Name: "controller", Principal: principal, EKS: s.eks, Now: now}
	connect := func(context.Context, plan.Cluster) (*k8s.Client, error) { return k8s.New("test", config) }
	return &Step{Connect: connect, Checkpoints: s.checkpoints, Versions: s.store, Self: self, Now: now}
}

func (s *scene) end() {
	for _, name := range []string{ownership.ReleaseController, ownership.ReleaseCRD} {
		s.uninstall(name)
	}
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

// uninstall removes a release if it exists.
func (s *scene) uninstall(name string) {
	s.Helper()
	last, err := s.last(name)
	if err == nil && last != nil {
		err = s.helm.uninstall(name)
	}
	if err != nil {
		s.Error(err)
	}
}

// last returns a release's newest revision as Helm sees it.
func (s *scene) last(name string) (*release.Release, error) {
	s.Helper()
	values := s.plan.Controller.CRDs.Values
	if name == ownership.ReleaseController {
		values = withReplicas(s.plan.Controller.Release, 1)
	}
	wanted, err := render(name, ownership.KarpenterVersion, values)
	if err != nil {
		s.Fatal(err)
	}
	return s.helm.last(wanted)
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

// versions returns the resourceVersions of all objects of Karpenter and Helm, by name.
func (s *scene) versions() string {
	var all []string
	for _, resource := range []string{"/v1/secrets", "/v1/serviceaccounts", "/v1/services", "apps/v1/deployments",
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

func (s *scene) revisions() (n int) {
	for _, secret := range s.List("", "v1", "secrets") {
		if secret.GetLabels()["owner"] == "helm" && secret.GetLabels()["name"] == ownership.ReleaseController {
			n++
		}
	}
	return n
}

func TestInstallUpgradeRepairRemove(t *testing.T) {
	s := begin(t)
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
	if after := s.versions(); after != before || s.revisions() != 1 {
		t.Errorf("%d revisions; before %s\nafter %s", s.revisions(), before, after)
	}

	t.Log("a second zone makes it two replicas")
	s.Create(node("two", "us-east-1b"))
	if progress := s.run(PartRelease, "updated: replicas=2 (was 1) release karpenter 1.10.0"); len(progress.Incidents) != 0 {
		t.Errorf("warnings %v", progress.Incidents)
	}
	s.check(2)

	t.Log("repairs what was deleted or changed, without a revision")
	s.Remove(k8stest.Object{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "karpenter",
		"namespace": "kube-system"}})
	s.Change(deployment, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas")
	})
	repaired := s.run(PartRelease, "repaired Service/kube-system/karpenter", "repaired Deployment/kube-system/karpenter")
	if len(repaired.Incidents) != 1 {
		t.Errorf("warnings %v", repaired.Incidents)
	}
	s.check(2)
	if s.revisions() != 2 {
		t.Errorf("%d revisions", s.revisions())
	}

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
	if s.Get(deployment) != nil || s.revisions() != 0 || s.Get(crd("nodepools.karpenter.sh")) == nil {
		t.Error("the controller is there or the CRDs are not")
	}
	if progress := s.run(PartRelease); progress.Wait != 0 {
		t.Errorf("progress %+v", progress)
	}
	s.run(PartCRDs)
}

func (s *scene) check(replicas int64) {
	s.Helper()
	live := s.Get(deployment)
	if live == nil || live.GetLabels()[ownership.TagRack] != "demo" {
		s.Fatalf("Deployment %v", live)
	}
	typed, err := k8s.AsDeployment(live)
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
	s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
	s.settle()
	if progress := s.run(PartRelease, "installed release karpenter 1.10.0"); len(progress.Warnings) > 0 {
		t.Errorf("one replica was asked for, and the warnings %v", progress.Warnings)
	}
	s.check(1)
	if got := s.variable("ISOLATED_VPC"); got != "" {
		t.Errorf("ISOLATED_VPC=%s", got)
	}
	const mirror = "123456789012.dkr.ecr.us-east-1.amazonaws.com/mirror/karpenter"
	s.plan = wanted(params.Config{ImageRepository: mirror, IsolatedVPC: true})
	s.run(PartRelease, "updated: controller.image.repository=123456789012.dkr.ecr.us-east-1.amazonaws.com/mirror/karpenter, "+
		"settings.isolatedVPC=true release karpenter 1.10.0")
	live := s.container()
	if got, want := live.Image, mirror+":1.10.0@"+karpenter.Default().Digest; got != want {
		t.Errorf("image %s, want %s", got, want)
	}
	if got := s.variable("ISOLATED_VPC"); got != "true" {
		t.Errorf("ISOLATED_VPC=%q", got)
	}
	s.run(PartRelease)
	s.plan = wanted(params.Config{})
	s.run(PartRelease, "updated: controller.image.repository unset, settings.isolatedVPC unset release karpenter 1.10.0")
	s.check(1)
}

func (s *scene) container() corev1.Container {
	s.Helper()
	typed, err := k8s.AsDeployment(s.Get(deployment))
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

// The next run completes a release, whatever state an interrupted call left it in.
func TestRecoversFromBeingKilled(t *testing.T) {
	s := begin(t)
	s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
	s.settle()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	for _, status := range []common.Status{common.StatusPendingInstall, common.StatusPendingUpgrade, common.StatusPendingRollback,
		common.StatusFailed, common.StatusUninstalling, common.StatusUnknown} {
		last, err := s.last(ownership.ReleaseController)
		if err != nil {
			t.Fatal(err)
		}
		last.Info.Status = status
		if err := s.helm.config.Releases.Update(last); err != nil {
			t.Fatal(err)
		}
		s.Remove(deployment)
		s.run(PartRelease, "applied again release karpenter 1.10.0")
		s.check(1)
		s.run(PartRelease)
	}
	if n := s.revisions(); n > history {
		t.Errorf("%d revisions are kept", n)
	}
	t.Log("an uninstall that stopped in the middle goes on")
	last, _ := s.last(ownership.ReleaseController)
	last.Info.Status = common.StatusUninstalling
	if err := s.helm.config.Releases.Update(last); err != nil {
		t.Fatal(err)
	}
	s.Remove(deployment)
	s.plan.Controller.Release.Present = false
	s.run(PartRelease, "uninstalled release karpenter")
}
