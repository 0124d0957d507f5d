package access

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// closing returns a scene with a cluster that was opened long ago and that has an entry and a ClusterRole of others.
func closing(t *testing.T) scene {
	s := begin(t)
	s.opened()
	s.cloud.EKS.Entries[theirs] = &awsfake.Entry{AccessEntry: types.AccessEntry{PrincipalArn: new(theirs), Type: new("STANDARD")}}
	s.api.Put(foreign, "rbac.authorization.k8s.io/v1", "ClusterRole", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"sawhorse.dev/rack": "other"}},
	})
	s.cloud.Pass(time.Hour)
	s.cloud.Forget()
	s.api.Writes = nil
	return s
}

const (
	theirs  = "arn:aws:iam::123456789012:role/admin"
	foreign = "/apis/rbac.authorization.k8s.io/v1/clusterroles/sawhorse:theirs"
)

// closed runs the step to its end and returns its incidents.
func (s scene) closed() (incidents []string) {
	s.Helper()
	for range 20 {
		progress, err := s.step.Run(s.Context(), s.plan, "close")
		if err != nil {
			s.Fatal(err)
		}
		for _, p := range progress.Incidents {
			incidents = append(incidents, p.Message)
		}
		if progress.Wait == 0 {
			return incidents
		}
		s.cloud.Pass(progress.Wait)
	}
	s.Fatal("not done after 20 calls")
	return nil
}

// left returns the access entries and the objects in the cluster.
func (s scene) left() string {
	return strings.Join(slices.Concat(slices.Sorted(maps.Keys(s.cloud.EKS.Entries)), slices.Sorted(maps.Keys(s.api.Objects))), " ")
}

// The functions' rights and entries are deleted, that of the function access last. Those of others stay. A second run
// changes nothing.
func TestCloses(t *testing.T) {
	s := closing(t)
	if incidents := s.closed(); len(incidents) > 0 {
		t.Error(incidents)
	}
	if got := s.left(); got != theirs+" "+foreign {
		t.Errorf("left: %s", got)
	}
	if writes := s.cloud.Changes(); len(writes) != len(functions) || !strings.Contains(writes[len(writes)-1], role("access")) {
		t.Errorf("writes %v", writes)
	}
	s.cloud.Forget()
	s.api.Writes = nil
	if s.closed(); len(s.cloud.Writes())+len(s.api.Writes) > 0 {
		t.Errorf("a second run: %v %v", s.cloud.Writes(), s.api.Writes)
	}
}

// If the cluster is gone or has no entries at all, nothing is to be done.
func TestClosesNothing(t *testing.T) {
	for what, spoil := range map[string]func(scene){
		"gone":                    func(s scene) { s.cloud.EKS.Cluster = nil },
		"going":                   func(s scene) { s.cloud.EKS.Cluster.Status = types.ClusterStatusDeleting },
		"never asked":             func(s scene) { s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeConfigMap },
		"older than access modes": func(s scene) { s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = "" },
		"without access modes":    func(s scene) { s.cloud.EKS.Cluster.AccessConfig = nil },
	} {
		s := closing(t)
		spoil(s)
		if s.closed(); len(s.cloud.Writes())+len(s.api.Writes) > 0 {
			t.Errorf("%s: %v %v", what, s.cloud.Writes(), s.api.Writes)
		}
	}
}

// An API server that does not answer or that refuses does not keep a rack from being forgotten. The entries are deleted
// nevertheless, and an incident names what stays and the command that deletes it.
func TestClosesWithoutTheAPIServer(t *testing.T) {
	for what, spoil := range map[string]func(scene){
		"silent":    func(s scene) { s.step.Connect = silent },
		"forbidden": func(s scene) { s.api.Forbidden = true },
		"an entry of an earlier role": func(s scene) {
			s.api.Denied = true
			s.madeAgain("access")
		},
	} {
		s := closing(t)
		spoil(s)
		incidents := s.closed()
		if len(incidents) != 1 ||
			!strings.Contains(incidents[0], "kubectl -n default delete namespaces,clusterrolebindings,clusterroles,rolebindings,roles "+
				"-l sawhorse.dev/rack=demo") {
			t.Errorf("%s: %v", what, incidents)
		}
		if len(s.cloud.EKS.Entries) != 1 {
			t.Errorf("%s: left %v", what, s.left())
		}
	}
}

func silent(context.Context, plan.Cluster) (*k8s.Client, error) {
	return nil, &outcome.Unreachable{Cluster: "demo", Host: "10.0.0.1", Cause: errors.New("dial tcp: i/o timeout")}
}

// A new entry does not work yet, and EKS may still return a deleted one. The step waits for both, and for an API
// server that fails.
func TestClosingWaits(t *testing.T) {
	s := closing(t)
	s.cloud.EKS.Entries[role("access")].CreatedAt = new(s.cloud.Now())
	s.api.Forbidden = true
	if progress, err := s.step.Run(t.Context(), s.plan, "close"); err != nil || progress.Wait == 0 || len(s.cloud.Writes()) > 0 {
		t.Errorf("%+v, %v, %v", progress, err, s.cloud.Writes())
	}
	s.api.Forbidden = false
	s.closed()

	t.Log("stopped behind its last call, and run again")
	s = closing(t)
	s.closed()
	s.cloud.Lag, s.api.Denied = awsfake.Lag{Shown: 8 * time.Second}, true
	if incidents := s.closed(); len(incidents) > 0 {
		t.Error(incidents)
	}

	s = closing(t)
	s.api.FailAt = 1
	if progress, err := s.step.Run(t.Context(), s.plan, "close"); err != nil || progress.Wait == 0 || len(s.cloud.Writes()) > 0 {
		t.Errorf("%+v, %v, %v", progress, err, s.cloud.Writes())
	}
	s.closed()
}

func TestClosingInterrupted(t *testing.T) {
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		s := closing(t)
		return s.cloud, func() (bool, error) {
			progress, err := s.step.Run(t.Context(), s.plan, "close")
			return progress.Wait == 0, err
		}
	}, func(cloud *awsfake.Cloud) any { return strings.Join(slices.Sorted(maps.Keys(cloud.EKS.Entries)), " ") })
}
