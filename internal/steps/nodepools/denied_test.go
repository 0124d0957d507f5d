package nodepools

import (
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// denied sets the status that Karpenter sets when EC2 denies its dry run.
func (s *scene) denied(o object, reason, message string) {
	s.Helper()
	s.Status(o, object{"conditions": []any{
		object{
			"type": "ValidationSucceeded", "status": "False", "reason": reason, "message": message,
			"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": s.Get(o).GetGeneration(),
		},
		object{
			"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": "ValidationSucceeded=False",
			"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": s.Get(o).GetGeneration(),
		}}})
}

// EC2 learns of a role's policies seconds after they were put, and Karpenter caches a denied dry run for 30 minutes. So
// Karpenter is made to retry while the step waits, but not in a loop.
func TestKarpenterTriesAgainWhatEC2Denied(t *testing.T) {
	for _, c := range []struct{ reason, message string }{
		{"CreateFleetAuthCheckFailed", "Controller isn't authorized to call ec2:CreateFleet"},
		{"CreateLaunchTemplateAuthCheckFailed", "Controller isn't authorized to call ec2:CreateLaunchTemplate"},
		{"RunInstancesAuthCheckFailed", "Controller isn't authorized to call ec2:RunInstances"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			one := class("one", "demo")
			s := begin(t, one)
			s.run("created EC2NodeClass/one")
			s.denied(one, c.reason, c.message)
			asked := func() string { return s.Get(one).GetAnnotations()[ownership.AnnotationValidate] }
			progress := s.run()
			if progress.Wait == 0 || asked() == "" || len(progress.Incidents) != 1 ||
				!strings.Contains(progress.Incidents[0].Message, c.message) {
				t.Fatalf("asked %q, %+v", asked(), progress)
			}
			t.Log("not again at once, and told once")
			first := asked()
			if progress := s.run(); progress.Wait == 0 || asked() != first || len(progress.Incidents) > 0 {
				t.Errorf("asked %q, then %q, %+v", first, asked(), progress)
			}
			s.clock = s.clock.Add(validateAgain)
			if progress := s.run(); asked() == first || len(progress.Incidents) > 0 {
				t.Errorf("asked %q, then %q, %+v", first, asked(), progress)
			}
			t.Log("once EC2 grants it, all is well, and nothing is written")
			s.ready(one)
			before := s.Get(one).GetResourceVersion()
			s.clock = s.clock.Add(time.Hour)
			if s.done(); s.Get(one).GetResourceVersion() != before {
				t.Error("a class that is Ready is written to")
			}
		})
	}
}

// Karpenter is not made to retry for other reasons; the step only waits.
func TestOtherReasonsAreWaitedFor(t *testing.T) {
	one := class("one", "demo")
	s := begin(t, one)
	s.run("created EC2NodeClass/one")
	s.denied(one, "DependenciesNotReady", "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution")
	if progress := s.run(); progress.Wait == 0 || len(progress.Incidents) > 0 ||
		s.Get(one).GetAnnotations()[ownership.AnnotationValidate] != "" {
		t.Errorf("%+v, %v", progress, s.Get(one).GetAnnotations())
	}
}
