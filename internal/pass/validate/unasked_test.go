package validate

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// problems returns the problems of the last iteration.
func (s *scene) problems() []params.Problem {
	s.Helper()
	run, err := s.store.Run(s.Context(), "demo", 0, int64(s.requests))
	s.must(err)
	return run.Problems
}

// The writers of a rack's parameters choose its cluster. If the cluster's owner has not tagged it for the rack,
// Sawhorse does not touch it: no step runs, and no claim is made.
func TestAClusterThatNobodyLetIn(t *testing.T) {
	for what, tags := range map[string]map[string]string{
		"no tags":           nil,
		"other tags":        {"team": "web"},
		"for another rack":  {ownership.TagRack: "other"},
		"with an empty tag": {ownership.TagRack: ""},
	} {
		s := begin(t, auth, on)
		s.cloud.EKS.Cluster.Tags = tags
		for _, full := range []bool{false, true} {
			s.wants(s.pass(full), outcome.PassRejected, true, "")
		}
		found := s.problems()
		if len(found) != 1 || found[0].Parameter != "cluster_name" {
			t.Fatalf("%s: %v", what, found)
		}
		for _, said := range []string{
			"cluster \"demo\"", ownership.TagRack, "`sawhorse register demo --cluster ",
			"`aws eks tag-resource --resource-arn " + awsfake.ClusterARN + " --tags sawhorse.dev/rack=demo`",
		} {
			if !strings.Contains(found[0].Message, said) {
				t.Errorf("%s: the problem does not say %s: %s", what, said, found[0].Message)
			}
		}
		if claimant, _ := s.store.ClusterLock(t.Context(), awsfake.ClusterARN); claimant != "" || s.records().Goal != "" {
			t.Errorf("%s: claimed by %q, %+v", what, claimant, s.records())
		}
		t.Log("let in, it is turned on")
		s.cloud.EKS.Cluster.Tags = map[string]string{ownership.TagRack: "demo"}
		s.wants(s.pass(false), outcome.PassPlanned, true, enable)
	}
}

// Of a cluster that has not let the rack in, the writers of the rack's parameters learn nothing: not its mode, state,
// version, owner, node groups or network, neither from a pass nor from a dry run. Nothing of them is even read.
func TestNothingIsToldOfAClusterThatNobodyLetIn(t *testing.T) {
	for what, change := range map[string]func(*scene){
		"nothing else is wrong":     func(*scene) {},
		"EKS Auto Mode":             func(s *scene) { s.cloud.EKS.Cluster.ComputeConfig = &types.ComputeConfigResponse{Enabled: new(true)} },
		"not active":                func(s *scene) { s.cloud.EKS.Cluster.Status = types.ClusterStatusFailed },
		"an old version":            func(s *scene) { s.cloud.EKS.Cluster.Version = new("1.20") },
		"another rack's":            func(s *scene) { _, err := s.store.LockCluster(t.Context(), awsfake.ClusterARN, "secret"); s.must(err) },
		"let in for another rack":   func(s *scene) { s.cloud.EKS.Cluster.Tags = map[string]string{ownership.TagRack: "secret"} },
		"another cluster's network": func(s *scene) { s.cloud.EC2.Tags["subnet-a"] = map[string]string{ownership.TagDiscovery: "secret"} },
		"a group of spot capacity":  func(s *scene) { s.cloud.EKS.Groups["system"].CapacityType = types.CapacityTypesSpot },
		"no node groups":            func(s *scene) { s.cloud.EKS.Groups = nil },
	} {
		s := begin(t, auth, on, "system_node_groups=nosuch")
		s.cloud.EKS.Cluster.Tags = nil
		change(s)
		s.cloud.Forget()
		s.wants(s.validated(false), outcome.PassRejected, true, "")
		s.untold(what, s.problems())
		_, err := s.validate.Run(t.Context(), Event{Rack: "demo", DryRun: true, Full: true})
		s.must(err)
		s.untold(what+", a dry run", s.answered.Problems)
		if len(s.answered.Warnings) > 0 {
			t.Errorf("%s: warnings %v", what, s.answered.Warnings)
		}
	}
}

// untold checks that the problems say only that the cluster has not let the rack in, and that nothing else was read of it.
func (s *scene) untold(what string, found []params.Problem) {
	s.Helper()
	const says = `cluster "demo" does not carry the tag sawhorse.dev/rack=demo, by which its owner lets the rack in; run `
	if len(found) != 1 || !strings.HasPrefix(found[0].Message, says) || strings.Contains(found[0].Message, "secret") {
		s.Errorf("%s: %v", what, found)
	}
	for _, call := range s.cloud.Made() {
		of, _, _ := strings.Cut(call, ".")
		if (of == "EKS" || of == "EC2" || of == "IAM" || of == "SQS" || of == "Events") && call != "EKS.DescribeCluster demo" ||
			strings.Contains(call, "cluster#") && strings.HasPrefix(call, "DynamoDB.Get") {
			s.Errorf("%s: %s", what, call)
		}
	}
}

// A rack whose access was migrated before this tag existed keeps working, with a warning, and can be turned off.
func TestARackThatWasOnBeforeTheTag(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.cloud.EKS.Cluster.Tags, s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = nil, types.AuthenticationModeApiAndConfigMap
	s.write("karpenter_cpu_limit=7")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
	run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests))
	if err != nil || len(run.Warnings) != 1 || run.Warnings[0].Parameter != "cluster_name" ||
		!strings.Contains(run.Warnings[0].Message, "`sawhorse register demo --cluster demo`") {
		t.Errorf("%v: %v", err, run.Warnings)
	}
	s.wants(s.pass(true), outcome.PassPlanned, true, enable)
	s.write(off)
	if got := s.pass(false); got.Outcome != outcome.PassPlanned {
		t.Errorf("turning off: %+v", got)
	}
}

// A cluster that was created again under the same name is a different cluster, and has no tags.
func TestAClusterThatWasMadeAnew(t *testing.T) {
	for _, mode := range types.AuthenticationMode("").Values() {
		s := begin(t, auth, on)
		s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
		s.pass(false)
		s.cloud.EKS.Cluster.Tags, s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = nil, mode
		s.cloud.EKS.Cluster.Identity.Oidc.Issuer = new("https://oidc.example/id/ANOTHER")
		s.all, s.audited = true, nil
		dialled := s.dialled
		s.write("karpenter_cpu_limit=7")
		for _, full := range []bool{false, true} { // it is not repaired either
			s.wants(s.pass(full), outcome.PassRejected, true, "")
		}
		if !slices.Equal(s.audited, []string{"queue", "queue"}) || s.dialled != dialled { // whose queue is not in the cluster
			t.Errorf("%s: audited %v, asked the API server %d times", mode, s.audited, s.dialled-dialled)
		}
	}
}

// The cluster must be tagged again for a rack that was forgotten.
func TestAForgottenRackIsNotLetInAnyMore(t *testing.T) {
	s := begin(t, auth)
	s.pass(false)
	s.must(s.store.End(t.Context(), "demo", awsfake.ClusterARN))
	s.cloud.EKS.Cluster.Tags = nil
	s.wants(s.pass(false), outcome.PassRejected, true, "")
}

// The deployment can be configured not to require the tag.
func TestTheTagIsWaived(t *testing.T) {
	s := begin(t, auth, on)
	s.cloud.EKS.Cluster.Tags = nil
	s.validate.Observer.Deployment.RequireClusterTag = false
	s.wants(s.pass(false), outcome.PassPlanned, true, enable)
}
