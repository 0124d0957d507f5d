package validate

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A named SPOT group is replaced. After that its copy, which is recognized by its tags, counts as the named group.
func TestANamedSPOTGroupIsReplaced(t *testing.T) {
	s := begin(t, auth, on, "system_node_groups=system")
	s.cloud.EKS.Groups["system"].CapacityType = types.CapacityTypesSpot
	const replacing = before + " nodegroups/copy infrastructure queue controller/crds" + pools + " nodegroups/retire"
	s.wants(s.pass(false), outcome.PassPlanned, true, replacing)
	run, err := s.store.Run(t.Context(), "demo", 0, 1)
	if err != nil || len(run.Warnings) != 1 || run.Warnings[0].Parameter != "system_node_groups" {
		t.Errorf("warnings %v, %v", run.Warnings, err)
	}
	s.reported(outcome.StateReconciled)

	t.Log("its copy has taken its place")
	live := s.cloud.EKS.Group("system-ondemand", *s.cloud.EKS.Groups["system"].ScalingConfig, nil)
	live.Tags = map[string]string{ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN, ownership.TagReplaces: "system"}
	delete(s.cloud.EKS.Groups, "system")
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	s.reported(outcome.StateReconciled)
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
	s.wrote(leaseItem)
	s.wants(s.pass(true), outcome.PassPlanned, true, enable)

	t.Log("somebody makes the SPOT group again")
	s.cloud.EKS.Group("system", *live.ScalingConfig, nil).CapacityType = types.CapacityTypesSpot
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodegroups/copy nodegroups/retire")

	t.Log("without its marks the copy is any group")
	delete(s.cloud.EKS.Groups, "system")
	live.Tags = nil
	s.wants(s.pass(false), outcome.PassRejected, true, "")
}
