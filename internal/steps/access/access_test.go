package access

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

const adminPolicy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"

var functions = []string{"access", "autoscaler", "controller", "nodegroups", "nodepools", "proof"}

func role(function string) string {
	return "arn:aws:iam::123456789012:role/path/Sawhorse-" + function
}

type scene struct {
	*testing.T
	cloud *awsfake.Cloud
	api   *k8sfake.Server
	step  *Step
	plan  *plan.Plan
}

func begin(t *testing.T) scene {
	cloud, api := awsfake.New(), k8sfake.New(t)
	principals := map[string]Principal{}
	for _, f := range functions {
		principals[f] = Principal{ARN: role(f), ID: "AROA" + f}
		cloud.IAM.Roles["Sawhorse-"+f] = &awsfake.Role{Role: iamtypes.Role{CreateDate: new(cloud.Now())}}
	}
	return scene{t, cloud, api, &Step{
		EKS: cloud.EKS, Connect: api.Dial, Principals: principals, Written: &store.Store{DB: cloud.Table}, Now: cloud.Now,
	}, &plan.Plan{
		Rack: "demo", Cluster: plan.Cluster{Name: "demo", ARN: awsfake.ClusterARN, Partition: "aws"},
		Access: plan.Access{Mode: "API_AND_CONFIG_MAP", Rights: plan.Rights(), Namespace: plan.Object{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": ownership.ProofNamespace, "labels": map[string]any{ownership.TagRack: "demo"}},
		}},
	}}
}

// madeAgain is what a stack does that was deleted and deployed again.
func (s scene) madeAgain(function string) {
	s.step.Principals[function] = Principal{ARN: role(function), ID: "AROAagain"}
}

func (s scene) run() (outcome.Progress, string) {
	s.Helper()
	progress, err := s.step.Run(s.Context(), s.plan, "")
	if err != nil {
		s.Fatal(err)
	}
	var changes []string
	for _, c := range progress.Changes {
		changes = append(changes, c.Subject+" "+c.Action)
	}
	return progress, strings.Join(changes, ", ")
}

// opened runs the step to its end.
func (s scene) opened() string {
	s.Helper()
	var all []string
	for range 10 {
		progress, changes := s.run()
		all = append(all, changes)
		if progress.Wait == 0 {
			return strings.Join(slices.DeleteFunc(all, func(text string) bool { return text == "" }), ", ")
		}
		s.cloud.Pass(progress.Wait)
	}
	s.Fatal("not done after 10 calls")
	return ""
}

func (s scene) unchanged() {
	s.Helper()
	s.cloud.Forget()
	s.api.Writes = nil
	if progress, changes := s.run(); changes != "" || progress.Wait != 0 || len(s.cloud.Writes())+len(s.api.Writes) > 0 {
		s.Errorf("a second run: changes %q, writes %v %v, %+v", changes, s.cloud.Writes(), s.api.Writes, progress)
	}
}

// The last good plan of a rejected rack may be one of an earlier release, which knew no proof.
func TestAPlanWithoutANamespaceIsApplied(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
	s.plan.Access.Namespace = nil
	if changes := s.opened(); strings.Contains(changes, "Namespace/") || !strings.Contains(changes, "ClusterRole/sawhorse:nodepools created") {
		t.Error(changes)
	}
}

func TestOpensTheClusterOnce(t *testing.T) {
	s := begin(t)
	t.Log("the access mode first, waiting for EKS's update")
	progress, changes := s.run()
	if changes != "access mode of cluster demo changed to API_AND_CONFIG_MAP" || progress.Wait <= 0 || len(s.cloud.EKS.Entries) > 0 {
		t.Fatalf("%s, %+v", changes, progress)
	}
	if progress, changes := s.run(); changes != "" || progress.Wait <= 0 || progress.Wait > 30*time.Second ||
		!strings.Contains(progress.Note, "API_AND_CONFIG_MAP") {
		t.Fatalf("%s, %+v", changes, progress)
	}
	t.Log("then the entries, and the rights behind them")
	s.opened()
	for _, f := range functions {
		entry := s.cloud.EKS.Entries[role(f)]
		if entry == nil {
			t.Fatalf("%s has no access entry", f)
		}
		object := s.api.Objects["/apis/rbac.authorization.k8s.io/v1/clusterroles/"+ownership.Group(f)]
		binding := s.api.Objects["/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"+ownership.Group(f)]
		if f == "access" || f == "controller" {
			if len(entry.KubernetesGroups) > 0 || !slices.Equal(entry.Policies, []string{adminPolicy}) || object != nil || binding != nil {
				t.Errorf("%s: %+v, role %v", f, entry, object)
			}
		} else if !slices.Equal(entry.KubernetesGroups, []string{ownership.Group(f)}) || len(entry.Policies) > 0 || object == nil ||
			binding == nil {
			t.Errorf("%s: %+v, role %v", f, entry, object)
		}
	}
	s.unchanged()
}

func TestAccessModes(t *testing.T) {
	for _, c := range []struct {
		live   types.AuthenticationMode
		wanted string
		asked  bool
	}{
		{types.AuthenticationModeConfigMap, "API_AND_CONFIG_MAP", true},
		{types.AuthenticationModeApiAndConfigMap, "API_AND_CONFIG_MAP", false},
		{types.AuthenticationModeApi, "API", false},
		{types.AuthenticationModeApi, "API_AND_CONFIG_MAP", false}, // somebody changed it to API after the plan was made
	} {
		s := begin(t)
		s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode, s.plan.Access.Mode = c.live, c.wanted
		s.opened()
		updates := slices.DeleteFunc(s.cloud.Writes(), func(call string) bool {
			return !strings.HasPrefix(call, "EKS.UpdateClusterConfig")
		})
		if (len(updates) > 0) != c.asked {
			t.Errorf("from %s to %s: %v", c.live, c.wanted, updates)
		}
	}
}

// The mode may change between DescribeCluster and the update. EKS then refuses the update.
func TestAnAccessModeThatHasComeAboutMeanwhile(t *testing.T) {
	s := begin(t)
	s.cloud.Before = func(call string) error {
		if strings.HasPrefix(call, "EKS.UpdateClusterConfig") {
			s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
		}
		return nil
	}
	if changes := s.opened(); strings.Contains(changes, "access mode") || !strings.Contains(changes, "access entry") {
		t.Errorf("changes %q", changes)
	}
	s = begin(t)
	s.plan.Access.Mode = "API" // no cluster reaches it in one step
	if _, err := s.step.Run(s.Context(), s.plan, ""); !errors.As(err, new(*types.InvalidParameterException)) {
		t.Errorf("a refusal for another reason: %v", err)
	}
}

// EKS accepts the change of the access mode, and it fails. The step ends with EKS's words instead of asking again until its deadline,
// and the next pass changes the mode.
func TestAnAccessModeWhoseUpdateFails(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Fails = []types.ErrorDetail{{ErrorCode: "AccessDenied", ErrorMessage: new("not now")}}
	var err error
	for calls := 0; err == nil; calls++ {
		if calls == 10 {
			t.Fatal("no failure after 10 calls")
		}
		_, err = s.step.Run(t.Context(), s.plan, "")
	}
	if want := "cluster demo: change access mode to API_AND_CONFIG_MAP: " + outcome.Unmade +
		": update update-1 ended as Failed: AccessDenied: not now"; err.Error() != want {
		t.Errorf("%v", err)
	}
	if len(s.cloud.EKS.Updates) != 1 || len(s.cloud.EKS.Entries) > 0 {
		t.Errorf("%d updates, %d entries", len(s.cloud.EKS.Updates), len(s.cloud.EKS.Entries))
	}
	if changes := s.opened(); !strings.HasPrefix(changes, "access mode of cluster demo changed to API_AND_CONFIG_MAP, ") {
		t.Error(changes)
	}
	s.unchanged()
}

// If the reason of a refusal cannot be read, the step returns the error of that read, which the state machine retries,
// and not the refusal.
func TestARefusalThatCannotBeLookedInto(t *testing.T) {
	s := begin(t)
	s.plan.Access.Mode = "API" // EKS refuses this
	s.cloud.Before = func(call string) error {
		if strings.HasPrefix(call, "EKS.UpdateClusterConfig") {
			s.cloud.FailAt(1, awsfake.Throttling)
		}
		return nil
	}
	if _, err := s.step.Run(s.Context(), s.plan, ""); !errors.Is(err, awsfake.Throttling) {
		t.Error(err)
	}
}

// EKS accepts one update at a time. While somebody else's is under way, the step asks for nothing.
func TestWaitsForAnotherUpdate(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Cluster.Status = types.ClusterStatusUpdating
	if progress, changes := s.run(); progress.Wait == 0 || changes != "" || len(s.cloud.Writes()) > 0 {
		t.Errorf("%s, %v, %+v", changes, s.cloud.Writes(), progress)
	}
	s.cloud.EKS.Cluster.Status = types.ClusterStatusActive
	s.opened()
	s.unchanged()
	t.Log("it holds up nothing where the mode is right")
	s.cloud.EKS.Cluster.Status = types.ClusterStatusUpdating
	s.unchanged()
	t.Log("but our own does, also where EKS shows the mode before its end")
	s = begin(t)
	s.run()
	s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
	s.cloud.EKS.Cluster.Status = types.ClusterStatusUpdating
	if progress, changes := s.run(); progress.Wait == 0 || changes != "" {
		t.Errorf("%s, %+v", changes, progress)
	}
}

func TestRepairsOnlyWhatDiffers(t *testing.T) {
	clusterRole := "/apis/rbac.authorization.k8s.io/v1/clusterroles/" + ownership.Group("nodepools")
	for _, c := range []struct {
		what  string
		spoil func(scene)
		want  string
	}{
		{"an entry gone", func(s scene) { delete(s.cloud.EKS.Entries, role("nodepools")) }, "access entry of function nodepools created"},
		{"an administrator's entry gone", func(s scene) { delete(s.cloud.EKS.Entries, role("controller")) },
			"access entry of function controller created, access entry of function controller associated with AmazonEKSClusterAdminPolicy"},
		{"other groups", func(s scene) { s.cloud.EKS.Entries[role("nodepools")].KubernetesGroups = []string{"x"} },
			"access entry of function nodepools updated"},
		{"no policy", func(s scene) { s.cloud.EKS.Entries[role("access")].Policies = nil },
			"access entry of function access associated with AmazonEKSClusterAdminPolicy"},
		{"another type", func(s scene) { s.cloud.EKS.Entries[role("nodepools")].Type = new("EC2_LINUX") },
			"access entry of function nodepools created"},
		// An entry binds to the role as it was at its creation. A stack that was deleted and deployed again has new
		// roles with the same names.
		{"the role created again", func(s scene) { s.madeAgain("nodepools") }, "access entry of function nodepools created"},
		{"an entry without its tag", func(s scene) { clear(s.cloud.EKS.Entries[role("nodepools")].Tags) },
			"access entry of function nodepools created"},
		{"a role of the cluster gone", func(s scene) { delete(s.api.Objects, clusterRole) }, "ClusterRole/sawhorse:nodepools created"},
		{"a role of the cluster changed", func(s scene) { s.api.Objects[clusterRole].Object["rules"] = []any{} },
			"ClusterRole/sawhorse:nodepools updated"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := begin(t)
			s.opened()
			c.spoil(s)
			s.cloud.Pass(time.Minute)
			if changes := s.opened(); changes != c.want {
				t.Errorf("changes %s\nwant %s", changes, c.want)
			}
			s.unchanged()
		})
	}
}

// An entry takes seconds to work. Until then the API server answers Unauthorized.
func TestWaitsUntilTheEntryWorks(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
	s.api.Denied = true
	s.run()
	s.cloud.Pass(time.Minute)
	if progress, _ := s.run(); progress.Wait <= 0 || !strings.Contains(progress.Note, "does not work yet") {
		t.Errorf("%+v", progress)
	}
	s.api.Denied = false
	s.opened()
	s.unchanged()
}

// The checks that need the API server come before anything in the cluster is changed.
func TestRefusesAnotherKarpenter(t *testing.T) {
	for what, put := range map[string]func(scene){
		"Deployment/infra/k": func(s scene) {
			s.api.Put("/apis/apps/v1/namespaces/infra/deployments/k", "apps/v1", "Deployment",
				map[string]any{"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "karpenter"}}})
		},
		"NodePool/workload": func(s scene) {
			s.api.Put("/apis/karpenter.sh/v1/nodepools/workload", "karpenter.sh/v1", "NodePool", map[string]any{})
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := begin(t)
			s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
			s.plan.NodePools.Objects = []plan.Object{
				{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "workload"}},
			}
			put(s)
			_, err := s.step.Run(t.Context(), s.plan, "conflicts")
			var rejected *outcome.Rejected
			if !errors.As(err, &rejected) || !strings.Contains(err.Error(), what) ||
				rejected.Problems[0].Parameter != "karpenter_auth_mode" || len(s.api.Writes)+len(s.cloud.Writes()) > 0 {
				t.Errorf("%v, writes %v %v", err, s.api.Writes, s.cloud.Writes())
			}
		})
	}
}

// A CRD that only another version brings, and that the cluster has from something else, is no other Karpenter: the step of the CRDs
// refuses that version.
func TestACRDBesideTheRacksOwnController(t *testing.T) {
	const name = "capacitybuffers.autoscaling.x-k8s.io"
	s := begin(t)
	s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
	s.plan.Controller.CRDs.Definitions = []string{name}
	s.api.Put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+name, "apiextensions.k8s.io/v1", "CustomResourceDefinition",
		map[string]any{})
	if _, err := s.step.Run(t.Context(), s.plan, "conflicts"); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("without a controller: %v", err)
	}
	controller := func(annotations map[string]any) {
		s.api.Put("/apis/apps/v1/namespaces/kube-system/deployments/karpenter", "apps/v1", "Deployment", map[string]any{
			"metadata": map[string]any{"annotations": annotations,
				"labels": map[string]any{"app.kubernetes.io/name": "karpenter", ownership.TagRack: s.plan.Rack}}})
	}
	controller(map[string]any{"meta.helm.sh/release-name": "karpenter", "meta.helm.sh/release-namespace": "kube-system"})
	if _, err := s.step.Run(t.Context(), s.plan, "conflicts"); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("beside one of Helm that is handed over: %v", err)
	}
	controller(nil)
	if _, err := s.step.Run(t.Context(), s.plan, "conflicts"); err != nil {
		t.Errorf("beside the rack's own: %v", err)
	}
}

// Before Karpenter is installed, this step rejects what later steps would reject. Afterwards those steps do.
func TestRefusesWhatLaterStepsWould(t *testing.T) {
	const deployments = "/apis/apps/v1/namespaces/kube-system/deployments/"
	ca := func(s scene, name string) {
		s.api.Put(deployments+name, "apps/v1", "Deployment",
			map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1"}}}}}})
	}
	for _, c := range []struct {
		what, parameter string
		put             func(scene)
	}{
		{"kube-system/one, kube-system/two", "karpenter_enabled", func(s scene) { ca(s, "one"); ca(s, "two") }},
		{`"kube-system/gone"`, "cluster_autoscaler", func(s scene) { ca(s, "one"); s.plan.Autoscaler.Deployment = "kube-system/gone" }},
		{"registry.k8s.io/coredns:v1", "cluster_autoscaler", func(s scene) {
			ca(s, "one")
			s.plan.Autoscaler.Deployment = "kube-system/coredns"
			s.api.Put(deployments+"coredns", "apps/v1", "Deployment",
				map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
					"containers": []any{map[string]any{"image": "registry.k8s.io/coredns:v1"}}}}}})
		}},
		{"DaemonSet/kube-system/nvidia-device-plugin-daemonset", "nvidia_device_plugin_enable", func(s scene) {
			s.plan.Controller.DevicePlugin = plan.Object{"kind": "DaemonSet"}
			s.api.Put("/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-device-plugin-daemonset", "apps/v1", "DaemonSet",
				map[string]any{})
		}},
		{"no PriorityClass of that name", "karpenter_controller_config", func(s scene) {
			s.plan.Controller.Release.Values = map[string]any{"priorityClassName": "platform"}
		}},
		{"", "", func(s scene) { ca(s, "one"); ca(s, "two"); s.plan.Autoscaler.Deployment = "kube-system/two" }},
		{"", "", func(s scene) {
			s.plan.Autoscaler.Deployment = "kube-system/gone"
			s.api.Put(deployments+"karpenter", "apps/v1", "Deployment", map[string]any{"metadata": map[string]any{
				"labels": map[string]any{"app.kubernetes.io/name": "karpenter", ownership.TagRack: "demo"}}})
		}},
	} {
		s := begin(t)
		s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
		s.plan.Goal = plan.GoalKarpenter
		c.put(s)
		_, err := s.step.Run(t.Context(), s.plan, "conflicts")
		if c.what == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		var rejected *outcome.Rejected
		if !errors.As(err, &rejected) || !strings.Contains(err.Error(), c.what) || rejected.Problems[0].Parameter != c.parameter ||
			len(s.api.Writes) > 0 {
			t.Errorf("%s: %v, writes %v", c.what, err, s.api.Writes)
		}
	}
}

func TestInterrupted(t *testing.T) {
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		s := begin(t)
		// One entry is older than its role, so that a deletion and a creation are among the calls.
		s.opened()
		s.madeAgain("access")
		s.cloud.EKS.Entries[role("nodepools")].KubernetesGroups = nil
		s.cloud.Forget()
		return s.cloud, func() (bool, error) {
			progress, err := s.step.Run(t.Context(), s.plan, "")
			return progress.Wait == 0, err
		}
	}, func(cloud *awsfake.Cloud) any {
		var all []any
		for _, arn := range slices.Sorted(maps.Keys(cloud.EKS.Entries)) {
			entry := cloud.EKS.Entries[arn]
			all = append(all, arn, *entry.Type, entry.KubernetesGroups, entry.Policies)
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	})
}

// The client reports an API server that fails as it reports one that does not know the entry yet.
func TestWaitsForAnAPIServerThatFails(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
	s.run()
	s.cloud.Pass(time.Minute)
	s.api.FailAt = 1
	if progress, err := s.step.Run(t.Context(), s.plan, ""); err != nil || progress.Wait == 0 || len(s.api.Writes) > 0 {
		t.Errorf("%+v, %v, %v", progress, err, s.api.Writes)
	}
	s.opened()
	s.unchanged()
}
