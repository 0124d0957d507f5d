package nodegroups

import (
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A build group that is emptied and brought back within seconds has the size it had, and one that is brought back and
// emptied again is empty, although EKS shows the state before. Nothing of it counts as a contest.
func TestTakenBack(t *testing.T) {
	contested := 0
	awsfake.TakenBack(t, func() (*awsfake.Cloud, func(bool) (time.Duration, error)) {
		s := begin(t)
		return s.cloud, func(set bool) (time.Duration, error) {
			s.plan.Nodegroups.BuildEmpty = set
			progress, err := s.step.Run(t.Context(), s.plan, "build")
			contested += len(progress.Warnings)
			return progress.Wait, err
		}
	}, func(cloud *awsfake.Cloud) any {
		return scene{cloud: cloud}.size("build")
	})
	if contested > 0 {
		t.Errorf("%d times contested", contested)
	}
}
