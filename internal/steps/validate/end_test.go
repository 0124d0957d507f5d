package validate

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/rack"
)

// Deleting the whole tree changes nothing while Karpenter is on; once it is off, the rack is forgotten.
func TestTheWholeTreeIsDeleted(t *testing.T) {
	s := begin(t, auth, on, "karpenter_cpu_limit=7")
	s.pass(false)
	s.reported(rack.Reconciled)
	s.write("karpenter_auth_mode", "karpenter_enabled", "karpenter_cpu_limit")
	s.wants(s.pass(false), Unchanged, true, "")
	if run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests)); err != nil || len(run.Warnings) != 1 || run.Warnings[0].Parameter != "rack" {
		t.Errorf("%v: %v", err, run.Warnings)
	}
	if p := s.records().Params; p["karpenter_cpu_limit"] != "7" {
		t.Errorf("in force: %v", p)
	}
	s.wants(s.pass(true), Planned, true, enable)

	t.Log("off, and deleted again before it is off")
	s.write(auth, off)
	s.pass(false)
	s.write("karpenter_auth_mode", "karpenter_enabled")
	if got := s.pass(false); got.Outcome == Forgotten {
		t.Error("forgotten while Karpenter may still be there")
	}

	t.Log("off: forgotten")
	records := s.records()
	records.WasOn = false
	s.must(s.store.SaveRecords(t.Context(), "demo", records))
	s.wants(s.pass(false), Forgotten, true, "")
	s.must(s.store.End(t.Context(), "demo", awsfake.ClusterARN))
	s.wants(s.pass(false), Unchanged, false, "")
	s.wrote(leaseItem)
}

// A rack of which no plan was ever accepted leaves no status behind either.
func TestARackThatWasOnlyEverRejected(t *testing.T) {
	s := begin(t, auth, "node_disk=x")
	s.wants(s.pass(false), Rejected, true, "")
	s.reported(rack.Rejected)
	s.write("karpenter_auth_mode", "node_disk")
	s.wants(s.pass(false), Forgotten, true, "")
	s.must(s.store.End(t.Context(), "demo", ""))
	s.wants(s.pass(false), Unchanged, false, "")
}

// The cluster has been deleted: while Karpenter is to be on that is a problem, and turning it off clears away what is in AWS.
func TestTheClusterIsGone(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.cloud.EKS.Cluster = nil
	for _, full := range []bool{false, true} {
		s.wants(s.pass(full), Rejected, true, "")
	}
	s.write(off)
	s.wants(s.pass(false), Planned, true, "nodepools queue infrastructure")
	if p, err := s.store.Plan(t.Context(), "demo"); err != nil || !p.Cluster.Gone || p.Cluster.ARN != awsfake.ClusterARN || p.Queue.Present || p.Infrastructure.Present {
		t.Errorf("%v: %+v", err, p)
	}
}
