package store

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// End deletes the rack's own claim and no other. If any call fails, a second try gives the same result.
func TestEnd(t *testing.T) {
	for n := range 12 {
		cloud := awsfake.New()
		s := &Store{DB: cloud.Table, Name: "sawhorse"}
		for _, rack := range []string{"demo", "other"} {
			must(t, s.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: rack}))
			must(t, s.SaveRecords(t.Context(), rack, plan.Records{Goal: plan.GoalAccess}))
			must(t, s.NoteOutputs(t.Context(), rack, map[string]string{"a": "1"}))
			must(t, s.Baselines().RecordOnce(t.Context(), rack, "nodegroup/build", []byte("before")))
			must(t, s.Baselines().RecordOnce(t.Context(), rack, "tag/subnet-a", nil))
			must(t, s.Checkpoints().RecordOnce(t.Context(), rack, "removal", nil))
			must(t, outcome.Record(t.Context(), s.Contests().Replace, rack, "pin/a/b", outcome.Contest{Times: 2}))
			must(t, s.SaveWritten(t.Context(), rack, "queue", map[string]resource.Record{"queue " + rack: {Done: true}}))
			must(t, s.SaveStatus(t.Context(), Status{Rack: rack}, "digest", Reported{}))
			if _, err := s.LockCluster(t.Context(), "arn:"+rack, rack); err != nil {
				t.Fatal(err)
			}
		}
		cloud.FailAt(n, awsfake.Throttling)
		if err := s.End(t.Context(), "demo", "arn:demo"); cloud.Failed() != (err != nil) {
			t.Errorf("call %d: %v", n, err)
		}
		cloud.FailAt(0, nil)
		must(t, s.End(t.Context(), "demo", "arn:demo"))
		must(t, s.End(t.Context(), "demo", "arn:other"))
		for rack, left := range map[string]bool{"demo": false, "other": true} {
			claimant, _ := s.ClusterLock(t.Context(), "arn:"+rack)
			p, _ := s.Plan(t.Context(), rack)
			records, _ := s.Records(t.Context(), rack)
			reported, _ := s.Reported(t.Context(), rack)
			outputs, _ := s.Outputs(t.Context(), rack)
			_, group, _ := s.Baselines().Get(t.Context(), rack, "nodegroup/build")
			_, tag, _ := s.Baselines().Get(t.Context(), rack, "tag/subnet-a")
			_, removal, _ := s.Checkpoints().Get(t.Context(), rack, "removal")
			contest, _ := outcome.ReadContest(t.Context(), s.Contests(), rack, "pin/a/b")
			if written, _ := s.Written(t.Context(), rack, "queue"); len(written) == 0 {
				t.Errorf("call %d: of %s it is not known any more what was deleted moments ago", n, rack)
			}
			if (contest.Times == 2) != left {
				t.Errorf("call %d: of %s there is a contest %+v", n, rack, contest)
			}
			if group != left || tag != left || removal != left {
				t.Errorf("call %d: of %s there are baselines of the group: %v, of the tag: %v, and the checkpoint: %v", n, rack, group, tag, removal)
			}
			if (claimant != "") != left || (p != nil) != left || (records.Goal != "") != left || (reported.Findings != "") != left ||
				(len(outputs) > 0) != left {
				t.Errorf("call %d: of %s there is claim %q, plan %v, goal %q, digest %q, outputs %v", n, rack, claimant, p, records.Goal,
					reported.Findings, outputs)
			}
		}
	}
}

func TestForgetWhatIsPublished(t *testing.T) {
	cloud := awsfake.New()
	p := Published{SSM: cloud.SSM, Paths: ownership.Paths{Prefix: "/sawhorse"}}
	must(t, p.WriteStatus(t.Context(), "demo", "{}"))
	writing(t, cloud, func(w *resource.Writer) error {
		return p.WriteOutputs(t.Context(), w, "demo", map[string]string{"a": "1", "b": "2"})
	})
	must(t, p.WriteStatus(t.Context(), "other", "{}"))
	for range 2 {
		writing(t, cloud, func(w *resource.Writer) error { return p.Forget(t.Context(), w, "demo") })
		if len(cloud.SSM.Values) != 1 || cloud.SSM.Values["/sawhorse/racks/other/status"] != "{}" {
			t.Errorf("left: %v", cloud.SSM.Values)
		}
	}
}
