package store

import (
	"reflect"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

var upgradedKarpenter = plan.KarpenterRecord{
	Version: "1.12.1", Before: "1.10.0", CRDs: "1.14.3",
	RolledBack: &plan.RolledBack{Version: "1.14.3", Reason: "pod a: ImagePullBackOff", Write: 7},
}

// What is recorded about Karpenter is read with the records, and stays when a pass saves those.
func TestKarpenterIsRecorded(t *testing.T) {
	s, cloud := store()
	must(t, s.SaveRecords(t.Context(), "demo", plan.Records{WasOn: true, Applied: map[string]string{"access": "f"}}))
	if got, err := s.Records(t.Context(), "demo"); err != nil || got.Karpenter != (plan.KarpenterRecord{}) {
		t.Errorf("a rack without a record: %+v, %v", got, err)
	}
	cloud.Forget()
	must(t, s.NoteKarpenter(t.Context(), "demo", upgradedKarpenter))
	if writes := cloud.Writes(); len(writes) != 1 {
		t.Errorf("it takes the writes %v, of which each may be the last", writes)
	}
	for range 2 {
		records, err := s.Records(t.Context(), "demo")
		must(t, err)
		if !reflect.DeepEqual(records.Karpenter, upgradedKarpenter) || !records.WasOn || records.Applied["access"] != "f" {
			t.Errorf("%+v", records)
		}
		must(t, s.SaveRecords(t.Context(), "demo", records))
	}
	must(t, s.NoteApplied(t.Context(), "demo", plan.Step{Name: "queue", Fingerprint: "q"}, nil))
	if got, _ := s.Records(t.Context(), "demo"); !reflect.DeepEqual(got.Karpenter, upgradedKarpenter) {
		t.Errorf("after a step was noted: %+v", got)
	}
	must(t, s.NoteKarpenter(t.Context(), "demo", plan.KarpenterRecord{}))
	if got, err := s.Records(t.Context(), "demo"); err != nil || got.Karpenter != (plan.KarpenterRecord{}) {
		t.Errorf("cleared: %+v, %v", got, err)
	}
}

// A rack that has no records has been forgotten, and must not get records by a step that outlived its pass.
func TestKarpenterOfAForgottenRack(t *testing.T) {
	s, cloud := store()
	if err := s.NoteKarpenter(t.Context(), "demo", upgradedKarpenter); err == nil || len(cloud.Table.Items) > 0 {
		t.Errorf("%v, %v", err, cloud.Table.Items)
	}
	cloud.Table.Items["rack#demo records"] = awsfake.Item{"karpenter": text("{")}
	if _, err := s.Records(t.Context(), "demo"); err == nil {
		t.Error("a record that is no JSON is read")
	}
}
