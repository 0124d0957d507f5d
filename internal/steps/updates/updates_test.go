package updates_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/steps/updates"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

type scene struct {
	*testing.T
	cloud *awsfake.Cloud
}

// last is what a new call of the step knows.
func (s scene) last() updates.Last {
	s.Helper()
	w, err := resource.Open(s.Context(), &store.Store{DB: s.cloud.Table}, "demo", "access", s.cloud.Now)
	if err != nil {
		s.Fatal(err)
	}
	return updates.Last{EKS: s.cloud.EKS, Writer: w, Cluster: "demo"}
}

func (s scene) end(l updates.Last) {
	s.Helper()
	if _, err := l.Writer.End(s.Context(), nil); err != nil {
		s.Fatal(err)
	}
}

// began notes an update that ends as given, in an earlier call.
func (s scene) began(id string, status types.UpdateStatus, errors ...types.ErrorDetail) {
	s.Helper()
	s.cloud.EKS.Updates = []*types.Update{{Id: &id, Status: status, Errors: errors}}
	l := s.last()
	l.Began(s.cloud.EKS.Updates[0])
	s.end(l)
}

func (s scene) failed(want string) {
	s.Helper()
	l := s.last()
	words, err := l.Failed(s.Context())
	if err != nil || words != want {
		s.Errorf("%q, %v; want %q", words, err, want)
	}
	s.end(l)
}

func TestAFailedUpdateIsToldOnce(t *testing.T) {
	s := scene{t, awsfake.New()}
	s.failed("")
	s.began("1", types.UpdateStatusFailed,
		types.ErrorDetail{ErrorCode: "SubnetNotFound", ErrorMessage: new("no such subnet"), ResourceIds: []string{"subnet-a", "subnet-b"}},
		types.ErrorDetail{ErrorCode: "AccessDenied", ErrorMessage: new("no")})
	s.failed(outcome.Unmade +
		": update 1 ended as Failed: SubnetNotFound: no such subnet (subnet-a, subnet-b); AccessDenied: no")
	s.failed("")
	s.began("2", types.UpdateStatusCancelled)
	s.failed(outcome.Unmade + ": update 2 ended as Cancelled: it gives no reason")
}

func TestOtherEndsAreNoFailure(t *testing.T) {
	s := scene{t, awsfake.New()}
	s.began("1", types.UpdateStatusSuccessful)
	s.failed("")
	s.cloud.EKS.Updates[0].Status = types.UpdateStatusFailed
	s.failed("") // it has been forgotten
	s.began("2", types.UpdateStatusFailed)
	s.cloud.EKS.Updates = nil
	s.failed("")
}

// An answer that is older than that of the cluster says nothing yet, and one that does not come is no failed update.
func TestTheEndIsAskedForAgain(t *testing.T) {
	s := scene{t, awsfake.New()}
	s.began("1", types.UpdateStatusInProgress)
	s.failed("")
	s.cloud.EKS.Updates[0].Status = types.UpdateStatusFailed
	s.cloud.FailAt(2, awsfake.Throttling) // after the read of the record
	l := s.last()
	if words, err := l.Failed(t.Context()); !errors.Is(err, awsfake.Throttling) || words != "" {
		t.Errorf("%q, %v", words, err)
	}
	s.failed(outcome.Unmade + ": update 1 ended as Failed: it gives no reason")
}

// The note of an update that takes longer than records are kept stays, and is not written with each look.
func TestALongUpdateIsNotForgotten(t *testing.T) {
	s := scene{t, awsfake.New()}
	s.began("1", types.UpdateStatusFailed)
	s.cloud.Forget()
	for range 20 {
		s.cloud.Pass(20 * time.Second)
		l := s.last()
		l.Continues()
		s.end(l)
	}
	if n := len(s.cloud.Writes()); n == 0 || n > 7 {
		t.Errorf("%d writes in %v", n, 400*time.Second)
	}
	s.failed(outcome.Unmade + ": update 1 ended as Failed: it gives no reason")
}
