package autoscaler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The first time a tool reverts the change, it is applied again. From the second time on the warning names the tool,
// and the change is applied again once a day.
func TestWhatOthersSetBackIsNotFoughtOver(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	s.RolledOut(o)
	s.run(plan.AutoscalerOff, true)
	for i, c := range []struct {
		later  time.Duration
		writes bool
		told   string // part of the warning
	}{
		{0, true, ""},
		{time.Second, false, "somebody has set it back 2 times"},
		{time.Hour, false, "somebody has set it back 2 times"},
		{24 * time.Hour, true, "somebody has set it back 2 times"},
		{time.Hour, false, "somebody has set it back 3 times"},
		{25 * time.Hour, true, "somebody has set it back 3 times"},
		{49 * time.Hour, true, ""}, // the change had stayed for two days
	} {
		s.Change(o, func(live *unstructured.Unstructured) { deployment{live}.scale(1) })
		s.clock = s.clock.Add(c.later)
		progress := s.run(plan.AutoscalerOff, c.writes)
		told := fmt.Sprint(progress.Warnings)
		if (len(progress.Warnings) > 0) != (c.told != "") || !strings.Contains(told, c.told) || progress.Unfinished != (c.told != "") {
			t.Errorf("%d: unfinished %v, %s; want %q", i, progress.Unfinished, told, c.told)
		}
		if !c.writes && progress.Wait > 0 {
			t.Errorf("%d: waits: %s", i, progress.Note)
		}
	}

	t.Log("turned off and on again, it begins anew")
	s.run(plan.AutoscalerBaseline, true)
	s.RolledOut(o)
	s.run(plan.AutoscalerBaseline, false)
	if progress := s.run(plan.AutoscalerOff, true); len(progress.Warnings) > 0 || len(s.contests) != 1 {
		t.Errorf("%+v, %v", progress.Warnings, s.contests)
	}
}

// If the step stops between the change and its record, the next call records it. What others revert afterwards is
// counted as usual.
func TestAChangeThatWasNotNoted(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	s.RolledOut(o)
	s.run(plan.AutoscalerOff, true)
	clear(s.contests)
	if s.run(plan.AutoscalerOff, false); len(s.contests) != 1 {
		t.Errorf("noted %v", s.contests)
	}
}
