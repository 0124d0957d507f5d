package observe

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// scene is the AWS account of a rack.
type scene struct {
	*testing.T
	cloud    *awsfake.Cloud
	store    *store.Store
	observer *Observer
}

func begin(t *testing.T) *scene {
	cloud := awsfake.New()
	records := &store.Store{DB: cloud.Table, Name: "sawhorse"}
	cloud.EKS.Addons["eks-pod-identity-agent"] = ekstypes.AddonStatusActive
	cloud.EKS.Group("system", ekstypes.NodegroupScalingConfig{MinSize: new(int32(2)), MaxSize: new(int32(4)), DesiredSize: new(int32(2))}, nil)
	cloud.EKS.Group("build", ekstypes.NodegroupScalingConfig{MinSize: new(int32(0)), MaxSize: new(int32(3)), DesiredSize: new(int32(0))},
		map[string]string{ownership.LabelBuild: "true"})
	cloud.EKS.Groups["build"].Taints = []ekstypes.Taint{{Key: new("dedicated"), Value: new("build"), Effect: ekstypes.TaintEffectNoSchedule}}
	return &scene{t, cloud, records, &Observer{
		EKS: cloud.EKS, EC2: cloud.EC2, IAM: cloud.IAM, SQS: cloud.SQS, SSM: cloud.SSM, Rules: cloud.Events, Records: records, Now: cloud.Now,
		Deployment: plan.Deployment{RequireClusterTag: true, NodeRoles: []string{"*"}},
	}}
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

var enabled = params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: true}

func (s *scene) observed(config params.Config, records plan.Records) plan.Facts {
	s.Helper()
	facts, err := s.observer.Facts(s.Context(), config, records)
	s.must(err)
	return facts
}

func TestObserve(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Cluster.Endpoint = new("https://api.example")
	s.cloud.EKS.Cluster.CertificateAuthority = &ekstypes.Certificate{Data: new("Q0E=")}
	s.cloud.EKS.Groups["system"].LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: new("lt-1"), Version: new("3")}
	s.cloud.EC2.TemplateGroups["lt-1/3"] = []string{"sg-node"}
	s.cloud.EC2.TemplateTypes, s.cloud.EKS.Groups["system"].InstanceTypes = map[string]types.InstanceType{"lt-1/3": "m6i.large"}, nil
	s.cloud.EC2.Tags["sg-node"] = map[string]string{"a": "b"}
	s.cloud.EKS.Groups["system"].Taints = []ekstypes.Taint{{Key: new("k"), Effect: ekstypes.TaintEffectNoSchedule}}
	got := s.observed(enabled, plan.Records{})
	group := func(name string, size plan.Scaling) plan.NodeGroup {
		return plan.NodeGroup{
			Name: name, Status: "ACTIVE", CapacityType: "ON_DEMAND", InstanceTypes: []string{"m6i.large"},
			AMIType: "AL2023_x86_64_STANDARD", Scaling: size, Subnets: []string{"subnet-b", "subnet-a"},
			Resources: plan.Resources{AutoScalingGroups: []plan.AutoScalingGroup{{Name: "eks-" + name}}},
			Created:   *s.cloud.EKS.Groups[name].CreatedAt,
		}
	}
	build, system := group("build", plan.Scaling{Max: 3}), group("system", plan.Scaling{Min: 2, Max: 4, Desired: 2})
	build.Taints = []plan.NodeGroupTaint{{Key: "dedicated", Value: "build", Effect: "NO_SCHEDULE"}}
	build.Labels = map[string]string{ownership.LabelBuild: "true"}
	system.SecurityGroups, system.Taints = []string{"sg-node"}, []plan.NodeGroupTaint{{Key: "k", Effect: "NO_SCHEDULE"}}
	want := plan.Facts{
		Cluster: &plan.ClusterFacts{
			Cluster: plan.Cluster{
				Name: "demo", ARN: awsfake.ClusterARN, Account: awsfake.Account, Region: awsfake.Region,
				Partition: "aws", OIDCIssuer: "https://oidc.example/id/ABC", SecurityGroup: "sg-cluster",
				Endpoint: "https://api.example", CA: "Q0E=",
			},
			Status: "ACTIVE", Version: "1.35", AuthMode: "CONFIG_MAP", VPC: awsfake.VPC, Tags: map[string]string{ownership.TagRack: "demo"},
		},
		NodeGroups: []plan.NodeGroup{build, system},
		Subnets: []plan.Tagged{
			{ID: "subnet-a", Zone: "eu-central-1a", VPC: awsfake.VPC, Tags: map[string]string{}},
			{ID: "subnet-b", Zone: "eu-central-1b", VPC: awsfake.VPC, Tags: map[string]string{}},
		},
		SecurityGroups: []plan.Tagged{
			{ID: "sg-cluster", VPC: awsfake.VPC, Tags: map[string]string{}}, {ID: "sg-node", VPC: awsfake.VPC, Tags: map[string]string{"a": "b"}},
		},
		PodIdentity: true,
		Deployment:  plan.Deployment{RequireClusterTag: true, NodeRoles: []string{"*"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// Without a pool for builds, a build group that was emptied returns to its size, which the plan passes on to Cluster
// Autoscaler.
func TestBuildGroupsThatGoBack(t *testing.T) {
	s := begin(t)
	size := []byte(`{"minSize":1,"maxSize":3,"desiredSize":2}`)
	s.must(s.store.Baselines().RecordOnce(t.Context(), "demo", outcome.BaselineSize("build"), size))
	if got := s.observed(enabled, plan.Records{}).Records.Emptied; len(got) != 1 ||
		got["build"] != (plan.Scaling{Min: 1, Max: 3, Desired: 2}) {
		t.Errorf("%+v", got)
	}
	with := enabled
	with.BuildNodes = true
	if got := s.observed(with, plan.Records{}).Records.Emptied; got != nil {
		t.Errorf("with a pool for builds: %+v", got)
	}
}

// A pass that finds nothing to do makes the same calls each time, so only what the plan needs is read.
func TestObserveAsksOnlyWhatThePlanNeeds(t *testing.T) {
	services := func(s *scene) string {
		var all []string
		for _, call := range s.cloud.Made() {
			service, _, _ := strings.Cut(call, ".")
			all = append(all, service)
		}
		slices.Sort(all)
		return strings.Join(slices.Compact(all), " ")
	}
	for _, c := range []struct {
		what    string
		config  params.Config
		records plan.Records
		want    string
	}{
		{"nothing asked", params.Config{ClusterName: "demo"}, plan.Records{}, ""},
		{"access", params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true}, plan.Records{}, "DynamoDB EC2 EKS"},
		{"Karpenter, the first time", enabled, plan.Records{}, "DynamoDB EC2 EKS Events IAM SQS"},
		{"Karpenter, later", enabled, plan.Records{WasOn: true, Credentials: "podidentity"}, "DynamoDB EC2 EKS"},
		{"Karpenter with IRSA, later", enabled, plan.Records{WasOn: true, Credentials: "irsa"}, "DynamoDB EC2 EKS IAM"},
	} {
		s := begin(t)
		s.observed(c.config, c.records)
		if got := services(s); got != c.want {
			t.Errorf("%s: asks %q, want %q", c.what, got, c.want)
		}
	}
}

// Whoever writes a rack's parameters may name any cluster. Of one whose owner has not let the rack in, only the answer to
// that question is read, and nothing of its node groups, its network or its records.
func TestAClusterThatHasNotLetTheRackInIsNotRead(t *testing.T) {
	for what, tags := range map[string]map[string]string{"no tag": nil, "another rack's": {ownership.TagRack: "other"}} {
		s := begin(t)
		s.cloud.EKS.Cluster.Tags = tags
		facts := s.observed(enabled, plan.Records{})
		if made := s.cloud.Made(); !slices.Equal(made, []string{"EKS.DescribeCluster demo"}) {
			t.Errorf("%s: %q", what, made)
		}
		asked := plan.ClusterFacts{
			Cluster:  plan.Cluster{Name: "demo", ARN: awsfake.ClusterARN, OIDCIssuer: *s.cloud.EKS.Cluster.Identity.Oidc.Issuer},
			AuthMode: "CONFIG_MAP", Tags: tags,
		}
		if want := (plan.Facts{Cluster: &asked, Deployment: s.observer.Deployment}); !reflect.DeepEqual(facts, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", what, facts, want)
		}
	}
	s := begin(t)
	s.cloud.EKS.Cluster.Tags, s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = nil, ekstypes.AuthenticationModeApiAndConfigMap
	if facts := s.observed(enabled, plan.Records{Goal: plan.GoalAccess}); len(facts.NodeGroups) != 2 {
		t.Errorf("a rack whose access has been migrated: %+v", facts)
	}
}

func TestObserveWhatIsNotThere(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Cluster = nil
	if facts := s.observed(enabled, plan.Records{}); facts.Cluster != nil || len(facts.NodeGroups) > 0 {
		t.Errorf("%+v", facts)
	}
	s = begin(t)
	s.cloud.EKS.Addons, s.cloud.EKS.Groups = nil, nil
	s.cloud.EKS.Cluster.AccessConfig, s.cloud.EKS.Cluster.Identity = nil, nil
	if facts := s.observed(enabled, plan.Records{}); facts.PodIdentity || facts.OIDCProvider || facts.Cluster.AuthMode != "CONFIG_MAP" ||
		len(facts.Subnets) > 0 {
		t.Errorf("%+v", facts)
	}
	s = begin(t)
	s.cloud.EKS.Cluster.ComputeConfig = &ekstypes.ComputeConfigResponse{Enabled: new(true)}
	if facts := s.observed(enabled, plan.Records{}); !facts.Cluster.AutoMode || facts.Cluster.IPv6 {
		t.Errorf("EKS Auto Mode: %+v", facts.Cluster)
	}
	s = begin(t)
	s.cloud.EKS.Cluster.KubernetesNetworkConfig = &ekstypes.KubernetesNetworkConfigResponse{IpFamily: ekstypes.IpFamilyIpv6}
	if facts := s.observed(enabled, plan.Records{}); !facts.Cluster.IPv6 {
		t.Errorf("IPv6: %+v", facts.Cluster)
	}
}

// A resource with a name of Sawhorse is unmanaged unless it has both ownership tags. With them it is Sawhorse's own,
// from the time before the rack was forgotten.
func TestForeign(t *testing.T) {
	tags := map[string]string{ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN}
	for _, c := range []struct {
		what string
		tags map[string]string
		want []string
	}{
		{"ours", tags, nil},
		{"no tags", nil, []string{"SQS queue demo-karpenter"}},
		{"another rack's", map[string]string{ownership.TagRack: "other", ownership.TagCluster: awsfake.ClusterARN},
			[]string{"SQS queue demo-karpenter"}},
		{"another cluster's", map[string]string{ownership.TagRack: "demo", ownership.TagCluster: "arn:other"},
			[]string{"SQS queue demo-karpenter"}},
	} {
		s := begin(t)
		s.cloud.SQS.Queues[awsfake.QueueURL("demo-karpenter")] = &awsfake.Queue{Tags: c.tags}
		if got := s.observed(enabled, plan.Records{}).Unmanaged; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	s := begin(t)
	s.cloud.IAM.Roles["demo-karpenter"], s.cloud.IAM.Roles["demo-karpenter-nodes"] = &awsfake.Role{}, &awsfake.Role{}
	s.cloud.Events.Rules["demo-karpenter"] = &awsfake.Rule{}
	want := []string{"IAM role demo-karpenter", "IAM role demo-karpenter-nodes", "EventBridge rule demo-karpenter"}
	if got := s.observed(enabled, plan.Records{}).Unmanaged; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	long := enabled
	long.Rack = strings.Repeat("d", 60)
	s.cloud.EKS.Cluster.Tags = map[string]string{ownership.TagRack: long.Rack}
	s.cloud.Forget()
	s.observed(long, plan.Records{})
	if calls := strings.Join(s.cloud.Made(), " "); strings.Contains(calls, long.Rack+"-karpenter") {
		t.Errorf("IAM refuses such a name: %s", calls)
	}
}

// The policies of the system nodes are read whatever name and path their role has.
func TestSystemPolicies(t *testing.T) {
	s := begin(t)
	groups := s.cloud.EKS.Groups
	groups["system"].NodeRole = new("arn:aws:iam::123456789012:role/eks/nodes")
	groups["build"].NodeRole = new("arn:aws:iam::123456789012:role/build")
	s.cloud.IAM.Roles["nodes"] = &awsfake.Role{Attached: []string{"arn:b", "arn:a", "arn:c", "arn:d"}} // more than a page
	s.cloud.IAM.Roles["build"] = &awsfake.Role{Attached: []string{"arn:e"}}
	if got := s.observed(enabled, plan.Records{}).SystemPolicies; !slices.Equal(got, []string{"arn:a", "arn:b", "arn:c", "arn:d"}) {
		t.Errorf("%v", got)
	}
	delete(s.cloud.IAM.Roles, "nodes")
	if got := s.observed(enabled, plan.Records{}).SystemPolicies; len(got) > 0 {
		t.Errorf("the role is gone, but it has %v", got)
	}
}

// The role of spot instances is looked up once, and only if a pool may launch some.
func TestTheRoleOfSpotInstances(t *testing.T) {
	s := begin(t)
	s.cloud.Forget()
	if s.observed(enabled, plan.Records{}).NoSpotRole || strings.Contains(strings.Join(s.cloud.Made(), " "), ownership.SpotRole) {
		t.Errorf("without spot: %v", s.cloud.Made())
	}
	spot := enabled
	spot.Additional = []params.Pool{{CapacityTypes: []string{"spot"}}}
	s.cloud.Forget()
	if !s.observed(spot, plan.Records{}).NoSpotRole || strings.Count(strings.Join(s.cloud.Made(), " "), ownership.SpotRole) != 1 {
		t.Errorf("without the role: %v", s.cloud.Made())
	}
	s.cloud.IAM.Roles[ownership.SpotRole] = &awsfake.Role{}
	if s.observed(spot, plan.Records{}).NoSpotRole {
		t.Error("with the role")
	}
}

// If somebody has deleted the launch template of a group, the pass continues, and keeps the tag on security groups that
// it can no longer find through the template.
func TestObserveALostLaunchTemplate(t *testing.T) {
	for _, left := range []string{"lt-1/4", "lt-2/3"} { // the version, or the template
		s := begin(t)
		s.cloud.EKS.Groups["system"].LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: new("lt-1"), Version: new("3")}
		s.cloud.EC2.TemplateGroups[left] = []string{"sg-node"}
		s.cloud.EC2.Tags["sg-node"] = map[string]string{ownership.TagDiscovery: "demo"}
		s.cloud.EC2.Tags["sg-other"] = map[string]string{ownership.TagDiscovery: "other"}
		got := s.observed(enabled, plan.Records{})
		if g := got.NodeGroups[1]; g.LostTemplate != "lt-1 version 3" || got.NodeGroups[0].LostTemplate != "" {
			t.Errorf("%s is left: lost %q", left, g.LostTemplate)
		}
		var ids []string
		for _, g := range got.SecurityGroups {
			ids = append(ids, g.ID)
		}
		if want := []string{"sg-cluster", "sg-node"}; !slices.Equal(ids, want) {
			t.Errorf("%s is left: security groups %v, want %v", left, ids, want)
		}
	}
}

// Groups that are being deleted or could not be created do not count for the rack's network, and their launch templates
// are not read. The health issues of EKS are kept.
func TestObserveStatesOfGroups(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Groups["build"].Status, s.cloud.EKS.Groups["build"].Subnets = ekstypes.NodegroupStatusCreateFailed, []string{"subnet-c"}
	s.cloud.EC2.Tags["subnet-c"] = map[string]string{}
	s.cloud.EKS.Groups["build"].LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: new("lt-9"), Version: new("1")}
	system := s.cloud.EKS.Groups["system"]
	system.Status = ekstypes.NodegroupStatusDegraded
	system.Health = &ekstypes.NodegroupHealth{Issues: []ekstypes.Issue{{Code: ekstypes.NodegroupIssueCodeAccessDenied, Message: new("no")}}}
	got := s.observed(enabled, plan.Records{})
	if g := got.NodeGroups[1]; g.Status != "DEGRADED" || g.Health.String() != "AccessDenied: no" {
		t.Errorf("%+v", g)
	}
	if len(got.Subnets) != 2 || got.NodeGroups[0].Status != "CREATE_FAILED" || got.NodeGroups[0].LostTemplate != "" {
		t.Errorf("subnets %v, %+v", got.Subnets, got.NodeGroups[0])
	}
}

// The agent is running while EKS updates its add-on, and if some of its pods are not healthy.
func TestThePodIdentityAgentIsInstalled(t *testing.T) {
	for status, want := range map[ekstypes.AddonStatus]bool{
		ekstypes.AddonStatusActive: true, ekstypes.AddonStatusUpdating: true,
		ekstypes.AddonStatusDegraded: true, ekstypes.AddonStatusUpdateFailed: true,
		ekstypes.AddonStatusCreating: false, ekstypes.AddonStatusCreateFailed: false,
		ekstypes.AddonStatusDeleting: false, ekstypes.AddonStatusDeleteFailed: false,
	} {
		s := begin(t)
		s.cloud.EKS.Addons["eks-pod-identity-agent"] = status
		if got := s.observed(enabled, plan.Records{}).PodIdentity; got != want {
			t.Errorf("%s: %v, want %v", status, got, want)
		}
	}
}

// The chosen kind of credentials is kept, even if the add-on changes later.
func TestObserveAnOIDCProviderWithoutSTS(t *testing.T) {
	const provider = "arn:aws:iam::" + awsfake.Account + ":oidc-provider/oidc.example/id/ABC"
	for _, c := range []struct {
		clients []string
		want    bool
	}{{nil, true}, {[]string{"other"}, true}, {[]string{"other", "sts.amazonaws.com"}, false}} {
		s := begin(t)
		delete(s.cloud.EKS.Addons, "eks-pod-identity-agent")
		s.cloud.IAM.Providers[provider] = c.clients
		if got := s.observed(enabled, plan.Records{}); !got.OIDCProvider || got.OIDCWithoutSTS != c.want {
			t.Errorf("%v: provider %v, without STS %v", c.clients, got.OIDCProvider, got.OIDCWithoutSTS)
		}
	}
}

// crowd answers a read only after the others that do not depend on it have been sent.
type crowd struct {
	awaited sync.WaitGroup
}

func (c *crowd) meet() error {
	c.awaited.Done()
	all := make(chan struct{})
	go func() { c.awaited.Wait(); close(all) }()
	select {
	case <-all:
		return nil
	case <-time.After(20 * time.Second):
		return errors.New("the others were not sent")
	}
}

// These reads delay each pass, so both node groups are read at the same time, and then both kinds of networks.
func TestObserveReadsSideBySide(t *testing.T) {
	s := begin(t)
	groups, networks := &crowd{}, &crowd{}
	groups.awaited.Add(2)
	networks.awaited.Add(2)
	s.cloud.Before = func(call string) error {
		switch name, _, _ := strings.Cut(call, " "); name {
		case "EKS.DescribeNodegroup":
			return groups.meet()
		case "EC2.DescribeSubnets", "EC2.DescribeSecurityGroups":
			return networks.meet()
		}
		return nil
	}
	facts, err := s.observer.Facts(t.Context(), enabled, plan.Records{WasOn: true, Credentials: "podidentity"})
	if err != nil || len(facts.NodeGroups) != 2 || len(facts.Subnets) == 0 || len(facts.SecurityGroups) == 0 {
		t.Errorf("%v: %+v", err, facts)
	}
}

// The policies of the node groups that the parameters name are compared.
func TestSystemPoliciesOfNamedGroups(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Groups["system"].NodeRole = new("arn:aws:iam::1:role/system")
	s.cloud.EKS.Groups["build"].NodeRole = new("arn:aws:iam::1:role/build")
	s.cloud.EKS.Groups["build"].Labels[ownership.LabelBuild] = "false"
	config := enabled
	config.SystemNodeGroups = []string{"build"}
	s.cloud.Forget()
	s.observed(config, plan.Records{})
	if calls := strings.Join(s.cloud.Made(), " "); strings.Contains(calls, "ListAttachedRolePolicies system") ||
		!strings.Contains(calls, "ListAttachedRolePolicies build") {
		t.Errorf("%s", calls)
	}
}
