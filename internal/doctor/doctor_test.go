package doctor

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// healthy returns a rack with Karpenter on for which no check finds anything.
func healthy() *Observed {
	tag := map[string]string{"karpenter.sh/discovery": "prod"}
	o := &Observed{
		Rack: "prod", Kubernetes: "1.35", Caller: "arn:aws:iam::111122223333:role/ops", Unseen: map[Source]string{},
		Params: map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"},
		Facts: plan.Facts{
			Cluster: &plan.ClusterFacts{
				VPC: "vpc-1",
				Cluster: plan.Cluster{
					Name: "prod", ARN: "arn:aws:eks:eu-central-1:111122223333:cluster/prod", Account: "111122223333", Region: "eu-central-1",
					Partition: "aws", SecurityGroup: "sg-1", OIDCIssuer: "https://oidc/1",
				},
				Status: "ACTIVE", Version: "1.35", AuthMode: "API", Tags: map[string]string{"sawhorse.dev/rack": "prod"},
			},
			NodeGroups: []plan.NodeGroup{{Name: "system", Subnets: []string{"subnet-a", "subnet-b"}}},
			Subnets: []plan.Tagged{
				{ID: "subnet-a", Zone: "a", VPC: "vpc-1", Tags: tag}, {ID: "subnet-b", Zone: "b", VPC: "vpc-1", Tags: tag},
			},
			SecurityGroups: []plan.Tagged{{ID: "sg-1", VPC: "vpc-1", Tags: tag}},
			PodIdentity:    true,
		},
		PublicAPI:   true,
		AddOns:      []AddOn{{Name: agent, Version: "v1", Status: "ACTIVE", Listed: []string{"v2", "v1"}}},
		Association: true,
		Free:        map[string]int{"subnet-a": 4000, "subnet-b": 4000},
		Instances: []Instance{
			{ID: "i-1", Type: "m5.large", VCPU: 2, HopLimit: 1, Tags: map[string]string{"kubernetes.io/cluster/prod": "owned"}},
		},
		Keys:    []Key{{ID: "alias/aws/ebs", State: "Enabled", AWSManaged: true}},
		Quotas:  map[Quota]float64{OnDemandVCPU: 500, SpotVCPU: 500, RulesPerBus: 300},
		Account: map[string]int{"Roles": 20, "RolesQuota": 1000, "InstanceProfiles": 5, "InstanceProfilesQuota": 1000},
		Rules:   3, RuleExists: true,
		Nodes: []corev1.Node{
			{ObjectMeta: metav1.ObjectMeta{Name: "system-1"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "pool-1", Labels: map[string]string{"karpenter.sh/nodepool": "workload"}}},
		},
		Pods:        []corev1.Pod{pod("kube-system", "coredns-1", "system-1", map[string]string{"k8s-app": "kube-dns"}, nil)},
		Deployments: []appsv1.Deployment{deployment("kube-system", "karpenter", 2, "karpenter"), deployment("shop", "web", 2, "web")},
		StatefulSets: []appsv1.StatefulSet{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}},
		},
		DaemonSets: []appsv1.DaemonSet{
			daemonSet("kube-system", "aws-node", "amazon-k8s-cni", corev1.Toleration{Operator: corev1.TolerationOpExists}),
		},
		CNI:     plan.CNI{Pods: 2, OwnRole: true},
		Budgets: []policyv1.PodDisruptionBudget{budget(nil, new(intstr.FromInt32(1)), 2, 1)},
		Pools:   []PoolObject{{Kind: "EC2NodeClass", Name: "workload"}, {Kind: "NodePool", Name: "workload"}},
	}
	o.Config = o.Examined()
	runs(o, "public.ecr.aws/karpenter/controller:1.10.0@sha256:1")
	return o
}

// runs sets the image of Karpenter's controller.
func runs(o *Observed, image string) {
	o.Deployments[0].Spec.Template.Spec.Containers = []corev1.Container{{Name: "controller", Image: image}}
}

func pod(namespace, name, node string, labels, annotations map[string]string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet"}},
		},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "public.ecr.aws/some/" + image + ":v1"}}}}
}

func deployment(namespace, name string, replicas int32, image string) appsv1.Deployment {
	return appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: template(image),
		},
	}
}

func daemonSet(namespace, name, image string, tolerations ...corev1.Toleration) appsv1.DaemonSet {
	d := appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DaemonSetSpec{Template: template(image)},
	}
	d.Spec.Template.Spec.Tolerations = tolerations
	return d
}

func budget(least, most *intstr.IntOrString, pods, allowed int32) policyv1.PodDisruptionBudget {
	return policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: least, MaxUnavailable: most,
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ExpectedPods: pods, DisruptionsAllowed: allowed, CurrentHealthy: pods, DesiredHealthy: pods,
		},
	}
}

func TestHealthy(t *testing.T) {
	report := Examine(healthy())
	if len(report.Findings) > 0 || len(report.Good) != len(checks) {
		t.Errorf("%+v", report)
	}
}

// with sets parameters besides those that turn Karpenter on.
func with(more map[string]string) func(*Observed) {
	return func(o *Observed) {
		texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
		for name, text := range more {
			texts[name] = text
		}
		o.Params = texts
	}
}

// off is a rack on which Karpenter was never on.
func off(o *Observed) {
	o.RuleExists, o.Association, o.Pools, o.Params = false, false, nil, map[string]string{"high_availability": "true"}
}

func all(changes ...func(*Observed)) func(*Observed) {
	return func(o *Observed) {
		for _, change := range changes {
			change(o)
		}
	}
}

type example struct {
	check, what string
	change      func(*Observed)
	found       []string
}

// cases change a healthy rack. Each lists the findings of the named check, any number of them, as "severity: part of
// the text".
var cases = []example{
	{"parameters", "none", func(o *Observed) { off(o); o.Params = nil }, []string{"info: no parameters yet"}},
	{"parameters", "a bad one", with(map[string]string{"karpenter_cpu_limit": "2OO"}), []string{`fails: karpenter_cpu_limit is "2OO"`}},
	{"parameters", "a bad one of those that turn Karpenter on", func(o *Observed) { off(o); o.Params["karpenter_enabled"] = "yes" },
		[]string{`fails: karpenter_enabled is "yes"`}},
	{"parameters", "one that the other needs", func(o *Observed) {
		off(o)
		o.Params["karpenter_auth_mode"], o.Params["karpenter_enabled"] = "false", "true"
	}, []string{"fails: karpenter_enabled is true, but karpenter_auth_mode is not"}},
	{"parameters", "a secret", func(o *Observed) { o.Secure = []string{"karpenter_enabled"} },
		[]string{"fails: karpenter_enabled is a SecureString", "warns: karpenter_enabled is not set and counts as true"}},
	{"parameters", "a manifest that Karpenter refuses", with(map[string]string{"karpenter_config": `{"nodePool":{"weight":300}}`}),
		[]string{"fails: nodePool.weight"}},
	{"parameters", "AMIs that the cluster's Kubernetes does not have", all(
		with(map[string]string{"karpenter_config": `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2@latest"}]}}`}),
		func(o *Observed) { o.Facts.Cluster.Version = "1.33" }), []string{"fails: no AMI of Amazon Linux 2 for Kubernetes 1.33"}},
	{"parameters", "a node group that is not there", with(map[string]string{"system_node_groups": "system,sytem"}),
		[]string{`fails: the node group "sytem"`}},
	{"parameters", "nobody could see node groups", all(with(map[string]string{"system_node_groups": "sytem"}), func(o *Observed) {
		o.Facts.NodeGroups, o.Unseen[Facts] = nil, "AccessDenied"
	}), []string{"unknown: AccessDenied"}},
	{"parameters", "nobody could see the cluster",
		all(with(map[string]string{"karpenter_config": `{"nodePool":{"weight":300}}`}), func(o *Observed) {
			o.Facts, o.Unseen[TheCluster], o.Unseen[Facts] = plan.Facts{}, "AccessDenied", "AccessDenied"
		}), []string{"fails: nodePool.weight", "unknown: AccessDenied", "unknown: AccessDenied"}},
	{"parameters", "turning off is held up by none of a pool's",
		with(map[string]string{"karpenter_enabled": "false", "karpenter_cpu_limit": "2OO"}), []string{`warns: karpenter_cpu_limit is "2OO"`}},
	{"parameters", "before Karpenter was on it is",
		func(o *Observed) {
			off(o)
			o.Params["karpenter_enabled"], o.Params["karpenter_cpu_limit"] = "false", "2OO"
		},
		[]string{`fails: karpenter_cpu_limit is "2OO"`}},
	{"parameters", "an image that only the deployment may allow", all(
		with(map[string]string{
			"karpenter_config": `{"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[{"id":"ami-0123456789abcdef0"}]}}`,
		}),
		func(o *Observed) {
			o.Facts.Images = map[string]plan.Image{"ami-0123456789abcdef0": {ID: "ami-0123456789abcdef0", Owner: "444455556666"}}
		}), []string{"warns: unless the stack's context values, which nobody knows here, allow it"}},

	{"parameters", "no cluster", func(o *Observed) {
		o.Facts, o.Missing, o.Unseen[TheCluster], o.Unseen[Facts] = plan.Facts{}, true, "none", "none"
	}, []string{`fails: there is no EKS cluster "prod"`}},
	{"parameters", "a cluster that failed", func(o *Observed) { o.Facts.Cluster.Status = "FAILED" }, []string{"fails: is FAILED"}},
	{"parameters", "a cluster at work", func(o *Observed) { o.Facts.Cluster.Status = "UPDATING" }, nil},
	{"parameters", "the owner's tag is missing, and what else there is", func(o *Observed) {
		off(o)
		o.Facts.Cluster.Tags, o.Facts.Cluster.AutoMode = nil, true
	}, []string{"fails: does not carry the tag sawhorse.dev/rack=prod", "fails: Auto Mode"}},
	{"parameters", "another rack's tag", func(o *Observed) { off(o); o.Facts.Cluster.Tags["sawhorse.dev/rack"] = "other" },
		[]string{"fails: if its owner has let another rack in"}},
	{"parameters", "the owner's tag is missing, and Karpenter is on", func(o *Observed) { o.Facts.Cluster.Tags = nil },
		[]string{"warns: does not carry the tag"}},
	{"parameters", "Kubernetes is too new", func(o *Observed) { o.Facts.Cluster.Version = "1.36" },
		[]string{"warns: 1.36; Karpenter 1.10.0 lists 1.26 to 1.35"}},
	{"parameters", "Kubernetes is too old", func(o *Observed) { o.Facts.Cluster.Version = "1.25" }, []string{"warns: 1.25"}},
	{"parameters", "Kubernetes is too new to turn Karpenter on", func(o *Observed) { off(o); o.Facts.Cluster.Version = "1.36" },
		[]string{"fails: is not installed on others"}},
	{"parameters", "the OIDC provider has gone", func(o *Observed) { o.Association = false },
		[]string{"fails: IAM has no OIDC provider for cluster prod any more"}},
	{"parameters", "IRSA", func(o *Observed) { o.Association, o.Facts.OIDCProvider = false, true }, nil},
	{"parameters", "IRSA without STS", func(o *Observed) {
		o.Association, o.Facts.OIDCProvider, o.Facts.OIDCWithoutSTS = false, true, true
	}, []string{"fails: lacks the client id sts.amazonaws.com"}},
	{"parameters", "no credentials to turn Karpenter on", func(o *Observed) { off(o); o.Facts.PodIdentity = false },
		[]string{"fails: neither the add-on"}},
	{"parameters", "the agent, before", off, nil},
	{"parameters", "a subnet that is not there", with(map[string]string{"subnet_ids": "subnet-0c0c0c0c"}),
		[]string{"fails: subnet_ids has subnet-0c0c0c0c"}},
	{"parameters", "a security group that is not there", with(map[string]string{"security_group_ids": "sg-0a0a0a0a"}),
		[]string{"fails: security_group_ids has sg-0a0a0a0a"}},
	{"parameters", "another cluster's discovery tag", func(o *Observed) {
		o.Facts.SecurityGroups[0].Tags = map[string]string{"karpenter.sh/discovery": "other"}
	}, []string{"fails: security group sg-1 carries the tag karpenter.sh/discovery=other"}},
	{"parameters", "karpenter_config opens the nodes' metadata",
		with(map[string]string{"karpenter_config": `{"ec2NodeClass":{"metadataOptions":{"httpPutResponseHopLimit":2}}}`}),
		[]string{"warns: a hop limit of 2"}},
	{"parameters", "system nodes closed to the controller", all(with(map[string]string{"system_node_groups": "system"}), func(o *Observed) {
		o.Facts.NodeGroups[0].Taints = []plan.NodeGroupTaint{{Key: "own", Effect: "NO_SCHEDULE"}}
	}), []string{"fails: system (own)"}},
	{"parameters", "system nodes for critical add-ons", func(o *Observed) {
		o.Facts.NodeGroups[0].Taints = []plan.NodeGroupTaint{{Key: ownership.TaintSystem, Effect: "NO_SCHEDULE"}}
	}, nil},
	{"parameters", "a resource of somebody else's", func(o *Observed) { off(o); o.Facts.Unmanaged = []string{"SQS queue prod-karpenter"} },
		[]string{"fails: SQS queue prod-karpenter exists"}},

	{"cni", "the nodes' role", func(o *Observed) { o.CNI = plan.CNI{Pods: 2, Lacking: 2} },
		[]string{"info: the VPC CNI has no role of its own"}},
	{"cni", "admitted too early", func(o *Observed) { o.CNI.Lacking = 1 }, []string{"warns: 1 of 2 pods"}},
	{"cni", "another CNI", func(o *Observed) { o.CNI = plan.CNI{} }, nil},
	{"cni", "not to be seen", func(o *Observed) { o.Unseen[CNI] = "forbidden" }, []string{"unknown: forbidden"}},
	{"kubernetes-upgrade", "not asked for", func(o *Observed) { o.Kubernetes = "" }, nil},
	{"kubernetes-upgrade", "Karpenter does not list it", func(o *Observed) { o.Kubernetes = "1.36" },
		[]string{"fails: at Kubernetes 1.36 a pass says cluster_name: cluster prod runs Kubernetes 1.36; Karpenter 1.10.0 lists 1.26 to 1.35"}},
	{"kubernetes-upgrade", "the version that is chosen lists it, and does not run yet",
		all(with(map[string]string{"karpenter_version": "1.14.3"}), func(o *Observed) { o.Kubernetes = "1.36" }),
		[]string{"fails: Karpenter 1.10.0 runs, which does not list Kubernetes 1.36, and karpenter_version is 1.14.3"}},
	{"kubernetes-upgrade", "the version that runs lists it", all(with(map[string]string{"karpenter_version": "1.14.3"}), func(o *Observed) {
		o.Kubernetes = "1.36"
		runs(o, "registry:5000/karpenter/controller:1.14.3@sha256:1")
	}), nil},
	{"kubernetes-upgrade", "two versions on",
		all(with(map[string]string{"karpenter_version": "1.15.1"}), func(o *Observed) { o.Kubernetes = "1.37" }),
		[]string{"fails: Karpenter 1.10.0 runs", "info: one minor version at a time"}},
	{"kubernetes-upgrade", "no version lists it", func(o *Observed) { o.Kubernetes, o.Facts.Cluster.Version = "1.38", "1.37" },
		[]string{"fails: no version that Sawhorse has lists it"}},
	{"kubernetes-upgrade", "Amazon Linux 2", all(
		with(map[string]string{"karpenter_config": `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2@latest"}]}}`}),
		func(o *Observed) {
			o.Kubernetes, o.Facts.Cluster.Version, o.Facts.NodeGroups[0].AMIType = "1.33", "1.32", "AL2_x86_64"
		},
	), []string{"fails: no AMI of Amazon Linux 2", "fails: node group system has AMIs of type AL2_x86_64"}},
	{"kubernetes-upgrade", "Amazon Linux 2 while there is one", func(o *Observed) {
		o.Kubernetes, o.Facts.Cluster.Version, o.Facts.NodeGroups[0].AMIType = "1.32", "1.31", "AL2_x86_64"
	}, nil},
	{"kubernetes-upgrade", "AMIs that are pinned", with(map[string]string{"karpenter_config": `{"ec2NodeClass":{"amiSelectorTerms":[` +
		`{"alias":"al2023@v20260107"},{"id":"ami-0123456789abcdef0"},{"alias":"al2023@latest"},` +
		`{"ssmParameter":"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"}]}}`}),
		[]string{"warns: [0] of EC2NodeClass workload pins al2023@v20260107",
			"warns: [3] of EC2NodeClass workload names the AMI of Kubernetes 1.34",
			"info: [1] of EC2NodeClass workload selects AMIs by id"}},
	{"kubernetes-upgrade", "an AMI by its age", all(with(map[string]string{"karpenter_ami_alias": "al2023@latest-7d"}), func(o *Observed) {
		o.Facts.Aged = map[string]string{"al2023@latest-7d": "al2023@v20260821"}
	}), []string{"info: amiSelectorTerms[0] of EC2NodeClass workload is al2023@v20260821 by its age, a release for Kubernetes 1.35"}},
	{"kubernetes-upgrade", "a kubelet that is too old", func(o *Observed) { o.Nodes[1].Status.NodeInfo.KubeletVersion = "v1.31.4-eks-1" },
		[]string{"fails: pool-1 (v1.31.4-eks-1)"}},
	{"kubernetes-upgrade", "a kubelet that is old enough", func(o *Observed) {
		o.Nodes[1].Status.NodeInfo.KubeletVersion = "v1.32.4-eks-1"
	}, nil},

	{"credentials", "the agent has gone", func(o *Observed) { o.AddOns = nil }, []string{"fails: no add-on eks-pod-identity-agent"}},
	{"credentials", "the agent was not installed", func(o *Observed) { o.AddOns[0].Status = "CREATE_FAILED" },
		[]string{"fails: is CREATE_FAILED"}},
	{"credentials", "the agent is ill, and at work", func(o *Observed) { o.AddOns[0].Status = "DEGRADED" }, nil},
	{"credentials", "IRSA needs no agent", func(o *Observed) { o.Association, o.AddOns = false, nil }, nil},
	{"credentials", "not yet", func(o *Observed) { off(o); o.AddOns = nil }, nil},
	{"add-ons", "ill", func(o *Observed) { o.AddOns[0].Status, o.AddOns[0].Issues = "DEGRADED", []string{"no room"} },
		[]string{"warns: is DEGRADED: no room"}},
	{"add-ons", "too old", func(o *Observed) { o.AddOns[0].Version = "v0" }, []string{"warns: does not list version v0"}},
	{"add-ons", "unlisted", func(o *Observed) { o.AddOns[0].Listed = nil }, nil},

	{"endpoints", "isolated, none", with(map[string]string{"isolated_vpc": "true"}),
		[]string{"fails: no available endpoint for ec2, ecr.api, ecr.dkr, eks, s3, sqs, ssm, sts, eks-auth"}},
	{"endpoints", "isolated, all",
		all(with(map[string]string{"isolated_vpc": "true"}), func(o *Observed) { o.Endpoints = endpointsFor(true) }), nil},
	{"endpoints", "without private DNS",
		all(with(map[string]string{"isolated_vpc": "true"}), func(o *Observed) { o.Endpoints = endpointsFor(false) }),
		[]string{"fails: have no private DNS"}},
	{"endpoints", "without private DNS, beside one that is used", all(with(map[string]string{"isolated_vpc": "true"}), func(o *Observed) {
		o.Endpoints = append([]Endpoint{{"com.amazonaws.eu-central-1.s3", "Interface", "available", false}}, endpointsFor(true)...)
	}), nil},
	{"endpoints", "private API", func(o *Observed) { o.PublicAPI = false }, []string{"info: no available endpoint"}},
	{"endpoints", "one not yet available", all(with(map[string]string{"isolated_vpc": "true"}), func(o *Observed) {
		o.Endpoints = endpointsFor(true)
		o.Endpoints[0].State = "pending"
	}), []string{"fails: endpoint for ec2"}},
	{"subnets", "one nearly full", func(o *Observed) { o.Free["subnet-a"] = 10 }, []string{"warns: subnet-a (a) has 10"}},
	{"subnets", "all full", func(o *Observed) { o.Free["subnet-a"], o.Free["subnet-b"] = 3, 15 },
		[]string{"fails: subnet-a (a) has 3, subnet-b (b) has 15"}},
	{"discovery", "untagged", func(o *Observed) { o.Facts.Subnets[0].Tags = nil }, []string{"warns: subnet-a lack the tag"}},
	{"discovery", "untagged, before", func(o *Observed) { off(o); o.Facts.Subnets[0].Tags = nil }, nil},

	{"vcpu-quota", "too low for the pools", func(o *Observed) { o.Quotas[OnDemandVCPU] = 90 },
		[]string{
			"warns: may run 90 vCPUs of standard on-demand instances and runs 2, 0 of them on Karpenter's nodes; the pools may grow to 100",
		}},
	{"vcpu-quota", "used up, and karpenter_enabled is refused", func(o *Observed) {
		off(o)
		o.Params["karpenter_enabled"], o.Quotas[OnDemandVCPU] = "yes", 3
	}, []string{"fails: may run 3"}},
	{"vcpu-quota", "used up", func(o *Observed) { o.Quotas[OnDemandVCPU] = 3 }, []string{"fails: may run 3"}},
	{"vcpu-quota", "Karpenter's own nodes count once", func(o *Observed) {
		o.Quotas[OnDemandVCPU] = 102
		o.Instances = append(o.Instances, Instance{
			Type: "m5.large", VCPU: 90, Tags: map[string]string{"eks:eks-cluster-name": "prod", "karpenter.sh/nodepool": "workload"},
		})
	}, nil},
	{"vcpu-quota", "other families have other quotas", func(o *Observed) {
		o.Quotas[OnDemandVCPU] = 102
		o.Instances = append(o.Instances, Instance{Type: "g5.48xlarge", VCPU: 192}, Instance{Type: "inf2.48xlarge", VCPU: 192})
	}, nil},
	{"vcpu-quota", "spot",
		all(with(map[string]string{"karpenter_capacity_types": "spot"}),
			func(o *Observed) { o.Quotas[SpotVCPU], o.Quotas[OnDemandVCPU] = 5, 0 }), []string{"warns: may run 5 vCPUs of standard spot"}},
	{"vcpu-quota", "karpenter_config has the limit", with(map[string]string{"karpenter_config": `{"nodePool":{"limits":{"cpu":"1k"}}}`}),
		[]string{"warns: the pools may grow to 1000"}},
	{"vcpu-quota", "karpenter_config has the capacity types",
		all(with(map[string]string{"karpenter_config": `{"nodePool":{"template":{"spec":` +
			`{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"NotIn","values":["on-demand"]}]}}}}`}),
			func(o *Observed) { o.Quotas[SpotVCPU], o.Quotas[OnDemandVCPU] = 5, 0 }), []string{"warns: may run 5 vCPUs of standard spot"}},
	{"iam-quota", "nearly used up", func(o *Observed) { o.Account["Roles"] = 995 }, []string{"warns: 995 of 1000 Roles"}},
	{"iam-quota", "used up", func(o *Observed) { o.Account["Roles"], o.RuleExists = 999, false },
		[]string{"fails: this rack needs 2 more"}},
	{"iam-quota", "profiles", func(o *Observed) { o.Account["InstanceProfiles"], o.RuleExists = 1000, false },
		[]string{"fails: InstanceProfiles"}},
	{"hold", "of this rack", func(o *Observed) { o.Held = "the rack is held (upgrade)" }, []string{"warns: the rack is held (upgrade)"}},
	{"hold", "of none", func(*Observed) {}, nil},
	{"parameter-quota", "used up", func(o *Observed) { o.Parameters = 10_000 }, []string{"fails: 10000 of 10000"}},
	{"parameter-quota", "nearly", func(o *Observed) { o.Parameters = 9_501 }, []string{"warns: 9501 of 10000"}},
	{"parameter-quota", "room for ten racks", func(o *Observed) { o.Parameters = 9_500 }, nil},
	{"rule-quota", "used up", func(o *Observed) { o.Rules, o.RuleExists = 300, false }, []string{"fails: 300 of 300"}},
	{"rule-quota", "nearly", func(o *Observed) { o.Rules, o.RuleExists = 295, false }, []string{"warns: 295 of 300"}},
	{"rule-quota", "nearly, and the rule is there", func(o *Observed) { o.Rules = 295 }, nil},
	{"organization", "limited", func(o *Observed) { o.Limited = []string{"ec2:RunInstances"} },
		[]string{"fails: does not allow ec2:RunInstances"}},
	{"organization", "denied", func(o *Observed) { o.Denied = []string{"ec2:RunInstances"} }, []string{"fails: deny ec2:RunInstances"}},

	{"metadata", "present nodes have more", func(o *Observed) { o.Instances[0].HopLimit = 2 },
		[]string{"info: with a hop limit above 1 (1): i-1; Karpenter's have 1"}},
	{"metadata", "of another cluster", func(o *Observed) { o.Instances[0].HopLimit, o.Instances[0].Tags = 2, nil }, nil},
	{"tolerations", "an agent that does not tolerate builds", all(with(map[string]string{"build_node_enabled": "true"}), func(o *Observed) {
		o.DaemonSets = append(o.DaemonSets, daemonSet("kube-system", "logs", "fluentd"), daemonSet("shop", "cache", "cache"))
	}), []string{"warns: kube-system/logs does not tolerate dedicated=build:NoSchedule of pool build", "info: shop/cache"}},
	{"tolerations", "pools with taints", all(with(map[string]string{
		"karpenter_node_taints":                 "team=web:NoSchedule,soft=1:PreferNoSchedule",
		"additional_karpenter_nodepools_config": `[{"name":"gpu","dedicated":true}]`,
	}), func(o *Observed) { o.DaemonSets = append(o.DaemonSets, daemonSet("kube-system", "logs", "fluentd")) }),
		[]string{"warns: dedicated-node=gpu:NoSchedule of pool gpu, team=web:NoSchedule of pool workload"}},
	{"tolerations", "karpenter_config has the taints", all(
		with(map[string]string{"karpenter_config": `{"nodePool":{"template":{"spec":{"taints":[{"key":"own","effect":"NoExecute"}]}}}}`}),
		func(o *Observed) { o.DaemonSets = append(o.DaemonSets, daemonSet("kube-system", "logs", "fluentd")) },
	), []string{"warns: kube-system/logs does not tolerate own:NoExecute of pool workload"}},
	{"dns", "on Karpenter's nodes only", func(o *Observed) { o.Pods[0].Spec.NodeName = "pool-1" }, []string{"warns: coredns-1"}},
	{"dns", "and the controller resolves by the node", func(o *Observed) {
		o.Pods[0].Spec.NodeName, o.Deployments[0].Spec.Template.Spec.DNSPolicy = "pool-1", corev1.DNSDefault
	}, nil},

	{"termination-handler", "as a DaemonSet", func(o *Observed) {
		o.DaemonSets = append(o.DaemonSets,
			daemonSet("kube-system", "nth", "aws-node-termination-handler", corev1.Toleration{Operator: corev1.TolerationOpExists}))
	}, []string{"fails: DaemonSet kube-system/nth"}},
	{"termination-handler", "as a Deployment", func(o *Observed) {
		o.Deployments = append(o.Deployments, deployment("kube-system", "nth", 1, "aws-node-termination-handler"))
	}, []string{"fails: Deployment kube-system/nth"}},
	{"termination-handler", "before Karpenter", func(o *Observed) {
		o.RuleExists, o.Deployments = false, append(o.Deployments, deployment("kube-system", "nth", 1, "aws-node-termination-handler"))
	}, []string{"warns: Deployment kube-system/nth"}},
	{"budgets", "maxUnavailable 0", func(o *Observed) { o.Budgets[0] = budget(nil, new(intstr.FromInt32(0)), 2, 0) },
		[]string{"fails: ever: maxUnavailable is 0 (pods: 2)"}},
	{"budgets", "maxUnavailable 0%", func(o *Observed) { o.Budgets[0] = budget(nil, new(intstr.FromString("0%")), 2, 0) },
		[]string{"fails: maxUnavailable is 0%"}},
	{"budgets", "minAvailable 100%", func(o *Observed) { o.Budgets[0] = budget(new(intstr.FromString("100%")), nil, 2, 0) },
		[]string{"fails: minAvailable is 100%"}},
	{"budgets", "minAvailable 1 of 1", func(o *Observed) { o.Budgets[0] = budget(new(intstr.FromInt32(1)), nil, 1, 0) },
		[]string{"fails: minAvailable is 1"}},
	{"budgets", "minAvailable 60% of 2", func(o *Observed) { o.Budgets[0] = budget(new(intstr.FromString("60%")), nil, 2, 0) },
		[]string{"fails: minAvailable is 60%"}},
	{"budgets", "no pods", func(o *Observed) { o.Budgets[0] = budget(nil, new(intstr.FromInt32(0)), 0, 0) }, nil},
	{"budgets", "only now", func(o *Observed) { o.Budgets[0] = budget(nil, new(intstr.FromInt32(1)), 3, 0) },
		[]string{"warns: allows no eviction now"}},
	{"single-replicas", "one of each", func(o *Observed) {
		o.Deployments[1].Spec.Replicas, o.StatefulSets[0].Spec.Replicas = new(int32(1)), nil
	}, []string{"info: with one pod (2): Deployment shop/web, StatefulSet shop/db"}},
	{"single-replicas", "those of the system", func(o *Observed) { o.Deployments[0].Spec.Replicas = new(int32(1)) }, nil},
	{"bare-pods", "one", func(o *Observed) { o.Pods[0].OwnerReferences = nil },
		[]string{"warns: pods without a controller (1): kube-system/coredns-1"}},
	{"bare-pods", "one that has ended",
		func(o *Observed) { o.Pods[0].OwnerReferences, o.Pods[0].Status.Phase = nil, corev1.PodSucceeded }, nil},
	{"bare-pods", "a static one", func(o *Observed) {
		o.Pods[0].OwnerReferences, o.Pods[0].Annotations = nil, map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}, nil},
	{"pools", "a class without subnets, and its pool", func(o *Observed) {
		o.Pools[0].NotReady = "SubnetsReady=False SubnetsNotFound no subnets; Ready=False"
		o.Pools[1].NotReady = "NodeClassReady=False NodeClassNotReady"
	}, []string{"fails: EC2NodeClass workload is not Ready: SubnetsReady=False SubnetsNotFound no subnets",
		"fails: NodePool workload is not Ready: NodeClassReady=False"}},
	{"pools", "nodes that did not register", func(o *Observed) { o.Pools[1].Unhealthy = "NodeRegistrationHealthy=False RegistrationFailed x" },
		[]string{"warns: the last nodes of NodePool workload did not launch or did not register: NodeRegistrationHealthy=False Registration"}},
	{"pools", "none", func(o *Observed) { o.Pools = nil }, []string{"fails: the cluster has no NodePool workload"}},
	{"pools", "none before it is on", func(o *Observed) { o.Pools, o.RuleExists = nil, false }, nil},
	{"pools", "none once it is off", all(with(map[string]string{"karpenter_enabled": "false"}), func(o *Observed) { o.Pools = nil }), nil},
	{"launches", "each cause once", func(o *Observed) {
		o.Launches = []Launch{
			{"workload-b", "Launched=Unknown InsufficientCapacityError insufficient capacity, " +
				"VcpuLimitExceeded: You have requested more vCPU capacity"},
			{"workload-a", "Launched=Unknown InsufficientCapacityError insufficient capacity, VcpuLimitExceeded: You have requested more than 64"},
			{"workload-a", "Launched=Unknown InsufficientCapacityError insufficient capacity, VcpuLimitExceeded: You have requested more than 64"},
			{"workload-c", "Launched=Unknown InsufficientCapacityError insufficient capacity, " +
				"InsufficientInstanceCapacity: We currently do not have"},
			{"workload-d", "Launched=Unknown Unauthorized User is not authorized to perform this operation due to a service control policy"},
			{"workload-e", "Registered=Unknown NodeNotFound Node not registered with cluster"},
			{"workload-f", "Initialized=Unknown NodeNotReady Node status is NotReady"},
			{"workload-g", "Launched=Unknown LaunchFailed Instance launch failed"},
		}
	}, []string{
		"fails: EC2 denied the launch to Karpenter's controller (1: workload-d); the last: Launched=Unknown Unauthorized User is not authorized",
		"fails: vCPU quota is used up (2: workload-a, workload-b); the last: Launched=Unknown InsufficientCapacityError insufficient capacity, " +
			"VcpuLimitExceeded: You have requested more than 64",
		"fails: has not registered with the cluster (1: workload-e)",
		"warns: EC2 had no capacity for the instance types that the pool allows (1: workload-c)",
		"warns: not ready for pods (1: workload-f)",
		"warns: NodeClaims that have not become nodes (1: workload-g); the last: Launched=Unknown LaunchFailed Instance launch failed",
	}},
	{"pending-pods", "no pool fits, by reason", func(o *Observed) {
		o.Waiting = []Waiter{waiter("shop/c", 2, "no pool tolerates it"), waiter("shop/b", 1, "no pool has the zone"),
			waiter("shop/a", 1, "no pool has the zone")}
	}, []string{"warns: Karpenter launches no node for 3 pods that are Pending, the first since 2026-01-02T03:01:00Z: " +
		"2 (shop/a, shop/b): no pool has the zone; 1 (shop/c): no pool tolerates it"}},
	{"pending-pods", "a limit, and more reasons than are shown", func(o *Observed) {
		o.Waiting = []Waiter{waiter("shop/a", 1, "1"), waiter("shop/b", 2, "2"), waiter("shop/c", 3, "3"), waiter("shop/d", 4, "4"),
			{Pod: "shop/e", Since: waiter("", 5, "").Since, Reason: "5", Limit: true}}
	}, []string{"fails: 5 pods that are Pending, the first since 2026-01-02T03:01:00Z: 1 (shop/a): 1; 1 (shop/b): 2; 1 (shop/c): 3; " +
		"2 for other reasons"}},
	{"pending-pods", "events not to be seen", func(o *Observed) { o.Unseen[PodEvents] = "forbidden" }, []string{"unknown: forbidden"}},
	{"do-not-disrupt", "both words", func(o *Observed) {
		o.Pods = append(o.Pods, pod("shop", "job", "system-1", nil, map[string]string{ownership.DoNotDisrupt: "true"}),
			pod("shop", "old", "system-1", nil, map[string]string{stayOfOld: "false"}))
	}, []string{"info: pods with karpenter.sh/do-not-disrupt=true (1): shop/job", "info: Karpenter does not read (1): shop/old"}},
	{"do-not-disrupt", "the controller's own", func(o *Observed) {
		o.Pods = append(o.Pods,
			pod("kube-system", "karpenter-1", "system-1", map[string]string{"app.kubernetes.io/name": "karpenter"},
				map[string]string{ownership.DoNotDisrupt: "true"}))
	}, nil},
}

func waiter(pod string, minute int, reason string) Waiter {
	return Waiter{Pod: pod, Since: time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC), Reason: reason}
}

// The page of private clusters asks for the endpoints that doctor looks for.
func TestThePageHasTheEndpoints(t *testing.T) {
	page, err := os.ReadFile("../../docs/private.md")
	if err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile(`It needs endpoints for ([\w., ]+?) and, with Pod\sIdentity, eks-auth\.`).FindStringSubmatch(
		strings.ReplaceAll(string(page), "\n", " "))
	if sentence == nil {
		t.Fatal("the page does not say which")
	}
	named := strings.Split(sentence[1], ", ")
	slices.Sort(named)
	if !slices.Equal(named, services) {
		t.Errorf("the page has %q, doctor looks for %q", named, services)
	}
}

func endpointsFor(private bool) (found []Endpoint) {
	for _, s := range append(slices.Clone(services), "eks-auth") {
		e := Endpoint{"com.amazonaws.eu-central-1." + s, "Interface", "available", private}
		if s == "s3" {
			e.Type = "Gateway"
		}
		found = append(found, e)
	}
	return found
}

func TestChecks(t *testing.T) {
	for _, c := range append(cases, keyCases...) {
		t.Run(c.check+"/"+c.what, func(t *testing.T) {
			o := healthy()
			c.change(o)
			o.Config = o.Examined()
			var found []Finding
			for _, f := range Examine(o).Findings {
				if f.Check == c.check {
					found = append(found, f)
				}
			}
			if len(found) != len(c.found) {
				t.Fatalf("%d findings, want %d: %+v", len(found), len(c.found), found)
			}
			for i, want := range c.found {
				severity, words, _ := strings.Cut(want, ": ")
				if f := found[i]; string(f.Severity) != severity || !strings.Contains(f.What, words) || f.Why == "" || f.Do == "" {
					t.Errorf("%+v, want %s", f, want)
				}
			}
		})
	}
}

// Every check has a case with findings. TestHealthy shows that it can also find nothing.
func TestEveryCheckHasCases(t *testing.T) {
	for _, c := range checks {
		if !slices.ContainsFunc(append(cases, keyCases...),
			func(each example) bool { return each.check == c.name && len(each.found) > 0 }) {
			t.Errorf("no case has a finding of %s", c.name)
		}
	}
}

// If a source was not observed, every check that needs it is unknown, and no other check is.
func TestUnseen(t *testing.T) {
	sources := map[Source]bool{}
	for _, c := range checks {
		for _, s := range c.reads() {
			sources[s] = true
		}
	}
	for source := range sources {
		o := healthy()
		o.Unseen[source] = "AccessDenied: no"
		report := Examine(o)
		for _, c := range checks {
			unknown := slices.ContainsFunc(report.Findings, func(f Finding) bool {
				return f.Check == c.name && f.Severity == Unknown && f.What == "AccessDenied: no" && f.Do != ""
			})
			if unknown != slices.Contains(c.reads(), source) || unknown == slices.Contains(report.Good, c.name) {
				t.Errorf("%s unseen: %s is unknown: %v", source, c.name, unknown)
			}
		}
	}
	if len(sources) < 20 {
		t.Errorf("only %d sources", len(sources))
	}
}

// What runs is read from the cluster. Without it, no version of Karpenter is said to run.
func TestVersionThatNobodySaw(t *testing.T) {
	for _, source := range []Source{Rules, Deployments} {
		o := healthy()
		o.Kubernetes, o.Facts.Cluster.Version = "1.36", "1.36"
		o.Deployments, o.Unseen[source] = nil, "AccessDenied: no"
		for _, f := range Examine(o).Findings {
			if (f.Check == upgrade || f.Check == asPass) && f.Severity != Unknown {
				t.Errorf("%s unseen: %+v", source, f)
			}
		}
	}
}

// The remedy for an API server that does not know the caller is the commands that create an access entry.
func TestRemedyOfTheAPIServer(t *testing.T) {
	o := healthy()
	o.Unseen[Budgets] = "Unauthorized"
	f := Examine(o).Findings[0]
	want := []string{
		"aws eks create-access-entry --cluster-name prod --principal-arn arn:aws:iam::111122223333:role/ops",
		"aws eks associate-access-policy --cluster-name prod --principal-arn arn:aws:iam::111122223333:role/ops " +
			"--access-scope type=cluster --policy-arn arn:aws:eks::aws:cluster-access-policy/AmazonEKSAdminViewPolicy",
	}
	if !slices.Equal(f.Commands, want) {
		t.Errorf("%q", f.Commands)
	}
	o.Facts.Cluster.AuthMode = "CONFIG_MAP"
	for _, caller := range []string{o.Caller, ""} {
		o.Caller = caller
		if f := Examine(o).Findings[0]; len(f.Commands) > 0 || !strings.Contains(f.Do, "aws-auth") ||
			!strings.Contains(f.Do, "karpenter_auth_mode=true") {
			t.Errorf("caller %q: %+v", caller, f)
		}
	}
	o.Caller = "arn:aws:iam::111122223333:root"
	if f := Examine(o).Findings[0]; len(f.Commands) > 0 || !strings.Contains(f.Do, "no access entry can name") {
		t.Errorf("%+v", f)
	}
}

// All sources that a missing cluster hides have the same remedy.
func TestRemedyOfTheCluster(t *testing.T) {
	for _, missing := range []bool{true, false} {
		o := healthy()
		o.Facts, o.Missing, o.Unseen[TheCluster], o.Unseen[Budgets] = plan.Facts{}, missing, "none", "none"
		for _, f := range Examine(o).Findings {
			if f.Severity == Unknown &&
				f.Do != map[bool]string{true: "See the check parameters.",
					false: "If the caller is not allowed to look, allow it eks:DescribeCluster, and run this again."}[missing] {
				t.Errorf("missing %v: %+v", missing, f)
			}
		}
	}
}

func TestOrder(t *testing.T) {
	o := healthy()
	o.Unseen[Budgets] = "no"
	o.Deployments[1].Spec.Replicas = new(int32(1))
	o.Facts.Cluster.Version, o.Free["subnet-a"] = "1.36", 1
	got := ""
	for _, f := range Examine(o).Findings {
		got += fmt.Sprintf("%s %s, ", f.Severity, f.Check)
	}
	if want := "warns parameters, warns subnets, info single-replicas, unknown budgets, "; got != want {
		t.Errorf("%s", got)
	}
}

func TestSome(t *testing.T) {
	if got := some(strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12")); got != "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more" {
		t.Error(got)
	}
}
