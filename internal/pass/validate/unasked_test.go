package validate

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
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
	s := begin(t, auth, on)
	s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
	s.pass(false)
	s.cloud.EKS.Cluster.Tags, s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = nil, types.AuthenticationModeConfigMap
	for _, full := range []bool{false, true} { // it is not repaired either
		s.wants(s.pass(full), outcome.PassRejected, true, "")
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
