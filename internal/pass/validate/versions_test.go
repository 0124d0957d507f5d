package validate

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// An iteration records the versions of the parameters that it has read, so that a write can be related to it: in its
// record, and in its answer if it has nothing to report and leaves no record.
func TestARoundTellsWhichVersionsItHasRead(t *testing.T) {
	s := begin(t, "karpenter_auth_mode=true")
	s.pass(false)
	s.reported("Reconciled")
	for version := int64(2); version < 4; version++ {
		_, err := s.cloud.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{
			Name: new(folder + "karpenter_auth_mode"), Value: new("true"), Overwrite: new(true),
		})
		s.must(err)
		answer := s.pass(false)
		if want := map[string]int64{"karpenter_auth_mode": version}; !maps.Equal(answer.Versions, want) {
			t.Errorf("%s: versions %v, want %v", answer.Outcome, answer.Versions, want)
		}
	}
	s.write("karpenter_cpu_limit=7", "karpenter_enabled=true")
	s.pass(false)
	run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests))
	s.must(err)
	want := map[string]int64{"karpenter_auth_mode": 3, "karpenter_cpu_limit": 1, "karpenter_enabled": 1}
	if run.Outcome != "Planned" || !maps.Equal(run.Versions, want) {
		t.Errorf("%s: the record has the versions %v, want %v", run.Outcome, run.Versions, want)
	}
	s.write("karpenter_auth_mode", "karpenter_cpu_limit", "karpenter_enabled")
	if answer := s.pass(false); answer.Versions == nil || len(answer.Versions) > 0 {
		t.Errorf("of no parameters: %v", answer.Versions)
	}
}
