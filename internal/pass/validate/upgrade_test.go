package validate

import (
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// upgraded returns a rack whose plan and fingerprints are those of a version with format 1.
func upgraded(t *testing.T) *scene {
	stored, err := os.ReadFile("../../plan/testdata/format1/enable-irsa.json")
	if err != nil {
		t.Fatal(err)
	}
	s := audited(t)
	s.cloud.Table.Items["plan#demo plan"]["plan"] = &types.AttributeValueMemberS{Value: string(stored)}
	for step := range s.records().Applied {
		s.must(s.store.NoteApplied(t.Context(), "demo", plan.Step{Name: step, Fingerprint: "of format 1"}, nil))
	}
	return s
}

// After an upgrade each step is due once, because its fingerprint has changed. An audit finds that, and the pass after
// that has nothing to do.
func TestAnUpgradeMakesEachStepDueOnce(t *testing.T) {
	s := upgraded(t)
	due, err := s.validate.Look(t.Context(), "demo", 0)
	s.must(err)
	if len(due) != len(strings.Fields(enable)) || due["queue"] != "it has not been done for this plan" {
		t.Errorf("an audit finds %v", due)
	}
	s.wants(s.pass(true), outcome.PassPlanned, true, enable)
	s.reported(outcome.StateReconciled)
	s.wants(s.pass(true), outcome.PassUnchanged, false, "")
}

// A full pass of a rejected rack repairs towards the plan that the former version has stored, once. After that only the
// steps that an audit finds are due.
func TestRepairsWithAPlanOfFormat1(t *testing.T) {
	s := upgraded(t)
	s.write("karpenter_cpu_limit=many")
	s.wants(s.pass(true), outcome.PassRejected, true, enable)
	s.reported(outcome.StateRejected)
	s.wants(s.pass(true), outcome.PassRejected, false, "")
	s.wrong = map[string]string{"queue": "it would write"}
	s.wants(s.pass(true), outcome.PassRejected, true, "queue")
}
