package validate

import (
	"context"
	"errors"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// A pod of the CNI that comes or goes with its node changes nothing. A role of its own, and its loss, are found by the
// next look, and the step infrastructure is due. What cannot be read leaves everything as it is, and so does a pass that
// does not look.
func TestTheNodesFollowTheCNI(t *testing.T) {
	s := audited(t)
	var observed plan.CNI
	var unread error
	s.validate.CNI = func(context.Context, plan.Cluster) (plan.CNI, error) { return observed, unread }
	const due = "access/conflicts infrastructure"
	for _, c := range []struct {
		what   string
		cni    plan.CNI
		unread error
		due    string
		policy bool
	}{
		{"the nodes' role", plan.CNI{Pods: 2, Lacking: 2}, nil, "", true},
		{"a role, but no pod was created again", plan.CNI{Pods: 2, OwnRole: true, Lacking: 2}, nil, "", true},
		{"a role, and one pod was not", plan.CNI{Pods: 2, OwnRole: true, Lacking: 1}, nil, "", true},
		{"unreadable before the decision", plan.CNI{Pods: 2, OwnRole: true}, errors.New("no answer"), "", true},
		{"a role of its own", plan.CNI{Pods: 2, OwnRole: true}, nil, due, false},
		{"the same", plan.CNI{Pods: 2, OwnRole: true}, nil, "", false},
		{"a node more", plan.CNI{Pods: 3, OwnRole: true}, nil, "", false},
		{"unreadable after the decision", plan.CNI{}, errors.New("no answer"), "", false},
		{"a pod without credentials", plan.CNI{Pods: 3, OwnRole: true, Lacking: 1}, nil, due, true},
		{"with credentials again", plan.CNI{Pods: 3, OwnRole: true}, nil, due, false},
		{"another CNI", plan.CNI{}, nil, due, true},
	} {
		observed, unread = c.cni, c.unread
		if got := s.looked(); got != c.due {
			t.Errorf("%s: a look finds %q, want %q", c.what, got, c.due)
		}
		answer := s.pass(true)
		if got := s.records().CNIIndependent; got == c.policy {
			t.Errorf("%s: the nodes do without its policy: %v", c.what, got)
		}
		if answer.Report {
			s.reported(outcome.StateReconciled)
		}
		s.validate.CNI = nil // the function validate does not look
		s.wants(s.pass(false), outcome.PassUnchanged, false, "")
		s.validate.CNI = func(context.Context, plan.Cluster) (plan.CNI, error) { return observed, unread }
	}
}

// Nothing is asked of a cluster in which Karpenter has not been on: it may be another rack's, and no node depends on the CNI.
func TestTheCNIIsNotObservedBeforeKarpenterIsOn(t *testing.T) {
	s := begin(t, auth, on)
	s.all = true
	s.validate.CNI = func(context.Context, plan.Cluster) (plan.CNI, error) {
		t.Error("the cluster was asked")
		return plan.CNI{Pods: 2, OwnRole: true}, nil
	}
	s.pass(true)
	if s.records().CNIIndependent {
		t.Error("nodes do without the CNI's policy")
	}
}

// The role of build nodes is removed by a pass that may come long after the one that stopped using it, so the records have
// it.
func TestTheRoleOfBuildNodesIsRemembered(t *testing.T) {
	s := begin(t, auth, on, "build_node_enabled=true", "build_node_minimal_role_enabled=true")
	s.pass(false)
	if !s.records().HadBuildRole {
		t.Error("the records do not have it")
	}
	for range 2 {
		s.write("build_node_minimal_role_enabled=false")
		s.pass(false)
		if p, err := s.store.Plan(t.Context(), "demo"); err != nil || p.Infrastructure.Retired != "demo-karpenter-build-nodes" {
			t.Fatalf("%+v, %v", p.Infrastructure, err)
		}
	}
}
