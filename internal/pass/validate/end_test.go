package validate

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// Deleting the whole tree changes nothing while Karpenter is on. Once it is off, the rack is forgotten.
func TestTheWholeTreeIsDeleted(t *testing.T) {
	s := begin(t, auth, on, "karpenter_cpu_limit=7")
	s.pass(false)
	s.reported(outcome.StateReconciled)
	s.write("karpenter_auth_mode", "karpenter_enabled", "karpenter_cpu_limit")
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	if run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests)); err != nil || len(run.Warnings) != 1 ||
		run.Warnings[0].Parameter != "rack" {
		t.Errorf("%v: %v", err, run.Warnings)
	}
	if p := s.records().Params; p["karpenter_cpu_limit"] != "7" {
		t.Errorf("in force: %v", p)
	}
	s.wants(s.pass(true), outcome.PassPlanned, true, enable)

	t.Log("off, and deleted again before it is off")
	s.write(auth, off)
	s.pass(false)
	s.write("karpenter_auth_mode", "karpenter_enabled")
	if got := s.pass(false); got.Outcome == outcome.PassForgotten {
		t.Error("forgotten while Karpenter may still be there")
	}

	t.Log("off: forgotten")
	records := s.records()
	records.WasOn = false
	s.must(s.store.SaveRecords(t.Context(), "demo", records))
	s.wants(s.pass(false), outcome.PassForgotten, true, "access/close")
	s.wants(s.pass(false), outcome.PassForgotten, true, "access/close") // it was stopped before the end, so it is repeated

	t.Log("the rack comes back before the end: its access is made again")
	s.write(auth)
	if got := s.pass(false); got.Outcome != outcome.PassPlanned || len(got.Steps) == 0 || got.Steps[0].Name != "access" {
		t.Errorf("%s, %s", got.Outcome, stepNames(got.Steps))
	}
	s.write("karpenter_auth_mode")
	s.wants(s.pass(false), outcome.PassForgotten, true, "access/close")
	s.must(s.store.End(t.Context(), "demo", awsfake.ClusterARN))
	s.wants(s.pass(false), outcome.PassForgotten, true, "") // a report that was stopped before the end is repeated
	s.must(s.store.Delist(t.Context(), "demo"))
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
	s.wrote(leaseItem)
}

// A rack for which no plan was ever accepted leaves no status behind either.
func TestARackThatWasOnlyEverRejected(t *testing.T) {
	s := begin(t, auth, "node_disk=x")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.reported(outcome.StateRejected)
	s.write("karpenter_auth_mode", "node_disk")
	s.wants(s.pass(false), outcome.PassForgotten, true, "")
	s.must(s.store.End(t.Context(), "demo", ""))
	s.must(s.store.Delist(t.Context(), "demo"))
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
}

// A rack that asked for nothing is on the schedule's list until its parameters are deleted. A name that never had
// parameters is never on it, even if its pass is requested.
func TestTheListOfTheSchedule(t *testing.T) {
	listed := func(s *scene, want ...string) {
		t.Helper()
		if got, _, err := s.store.Racks(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("listed %v, %v; want %v", got, err, want)
		}
	}
	s := begin(t)
	s.wants(s.pass(true), outcome.PassUnknown, false, "")
	listed(s)
	s.write("karpenter_enabled=unset")
	if _, err := s.validate.Run(t.Context(), Event{Rack: "demo", DryRun: true}); err != nil {
		t.Fatal(err)
	}
	listed(s) // a dry run changes nothing
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
	listed(s, "demo")
	s.write("karpenter_enabled")
	s.wants(s.pass(false), outcome.PassForgotten, true, "")

	t.Log("a rack is listed before anything of its cluster can fail")
	s = begin(t, auth)
	s.cloud.FailAt(10, awsfake.Throttling) // the lease, eight reads, and the write to the list
	s.lease("me", false)
	if _, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"}); err == nil {
		t.Fatal("nothing failed")
	}
	listed(s)
	s.cloud.FailAt(11, awsfake.Throttling)
	if _, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"}); err == nil {
		t.Fatal("nothing failed")
	}
	listed(s, "demo")
}

// If the cluster is deleted while Karpenter is to be on, that is a problem. Turning Karpenter off then deletes what is
// left in AWS.
func TestTheClusterIsGone(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.cloud.EKS.Cluster = nil
	for _, full := range []bool{false, true} {
		s.wants(s.pass(full), outcome.PassRejected, true, "")
	}
	s.write(off)
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools queue infrastructure")
	if p, err := s.store.Plan(t.Context(), "demo"); err != nil || !p.Cluster.Gone ||
		p.Cluster.ARN != awsfake.ClusterARN || p.Queue.Present || p.Infrastructure.Present {
		t.Errorf("%v: %+v", err, p)
	}
}

// lookups records the names of the clusters that are described.
func (s *scene) lookups() *[]string {
	names := &[]string{}
	s.cloud.Before = func(call string) error {
		if name, ok := strings.CutPrefix(call, "EKS.DescribeCluster "); ok {
			*names = append(*names, name)
		}
		return nil
	}
	return names
}

// found returns the record of the last iteration.
func (s *scene) found() store.Run {
	s.Helper()
	run, err := s.store.Run(s.Context(), "demo", 0, int64(s.requests))
	s.must(err)
	return run
}

// A changed cluster_name is refused for a rack whose access has been migrated, whether that cluster exists or not. EKS
// is called only for the cluster that the rack has: otherwise a typo could look like a deleted cluster, and the rack
// would be forgotten while its nodes run.
func TestAnotherClusterNameIsNoClusterThatIsGone(t *testing.T) {
	const changed, malformed = "has been migrated; write prod", "allowed is the name of an EKS cluster"
	for written, says := range map[string]string{
		"cluster_name=prodd": changed, "cluster_name=east": changed, "cluster_name": changed, "cluster_name=prod!": malformed,
	} {
		for _, state := range [][]string{{auth, on}, {auth, off}, {auth}} {
			s := begin(t, auth, on, "cluster_name=prod")
			s.cloud.EKS.Cluster.Name = new("prod")
			s.pass(false)
			asked := s.lookups()
			s.write("karpenter_enabled")
			s.write(append(state, written)...)
			for _, full := range []bool{false, true} {
				if got := s.pass(full); got.Outcome != outcome.PassRejected || (len(got.Steps) > 0) != full {
					t.Errorf("%s, %v: %s, %s", written, state, got.Outcome, stepNames(got.Steps))
				}
				found := s.found()
				if len(found.Problems) != 1 || found.Problems[0].Parameter != "cluster_name" || !strings.Contains(found.Problems[0].Message, says) {
					t.Errorf("%s, %v: %v", written, state, found.Problems)
				}
				if slices.ContainsFunc(found.Warnings, func(w params.Problem) bool { return w.Parameter == "cluster_name" }) {
					t.Errorf("%s, %v: %v", written, state, found.Warnings)
				}
			}
			if slices.ContainsFunc(*asked, func(asked string) bool { return asked != "prod" }) {
				t.Errorf("%s, %v: EKS was asked for %q", written, state, *asked)
			}
		}
	}
}

// If EKS does not have the named cluster, the rack's cluster counts as deleted only if it has that name.
func TestOnlyTheClusterOfTheRackIsGone(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	records := s.records()
	delete(records.Params, "cluster_name") // so that the name may change
	s.must(s.store.SaveRecords(t.Context(), "demo", records))
	s.write(off, "cluster_name=demmo")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if found := s.found(); len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Message, `there is no EKS cluster "demmo"`) {
		t.Error(found.Problems)
	}
}

// For a new rack whose cluster_name was refused, that is the only problem: nothing is reported about a cluster that it
// did not name.
func TestABadClusterNameOfANewRack(t *testing.T) {
	s := begin(t, auth, on, "cluster_name=de mo")
	asked := s.lookups()
	s.cloud.EKS.Cluster = nil
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if found := s.found(); len(found.Problems) != 1 || len(*asked) > 0 {
		t.Errorf("%v, EKS was asked for %q", found.Problems, *asked)
	}
}

// If the cluster of a rack that only has its access is deleted, nothing is left in AWS, and the rack ends with its
// parameters.
func TestTheClusterOfAnAccessOnlyRackIsGone(t *testing.T) {
	s := begin(t, auth)
	s.pass(false)
	s.cloud.EKS.Cluster = nil
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if found := s.found(); len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Message, awsfake.ClusterARN) {
		t.Error(found.Problems)
	}
	s.write("karpenter_auth_mode")
	s.wants(s.pass(false), outcome.PassForgotten, true, "access/close")
}
