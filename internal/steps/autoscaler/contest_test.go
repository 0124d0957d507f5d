package autoscaler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
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
	if progress := s.run(plan.AutoscalerOff, true); len(progress.Warnings) > 0 || len(s.contests.Kept) != 1 {
		t.Errorf("%+v, %v", progress.Warnings, s.contests.Kept)
	}
}

// The warning names the manager of the field that was set back, and not the one that wrote to the Deployment last.
func TestTheWarningNamesWhoSetTheFieldBack(t *testing.T) {
	wanted := deployment{&unstructured.Unstructured{Object: autoscaler("ca", image)}}
	wanted.scale(0)
	managers := []metav1.ManagedFieldsEntry{
		manager("scaler", 1, `{"f:spec":{"f:replicas":{}}}`),
		manager("templater", 2, `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"ca\"}":{"f:command":{}}}}}}}`),
		manager("placer", 3, `{"f:spec":{"f:template":{"f:spec":{"f:nodeSelector":{"f:`+ownership.LabelSystemNode+`":{}}}}}}`),
		manager("labeller", 4, `{"f:metadata":{"f:labels":{}}}`),
	}
	for by, change := range map[string]func(deployment){
		"scaler":    func(d deployment) { d.scale(1) },
		"templater": func(d deployment) { d.setLine(line{Command: []string{"./cluster-autoscaler", "--nodes=1:2:theirs"}}) },
		"placer":    func(d deployment) { d.setPin(new("false")) },
	} {
		live, r := wanted.copy(), &run{}
		live.SetManagedFields(managers)
		change(live)
		r.contested(live, wanted, outcome.Ruling{Times: 2})
		if len(r.progress.Warnings) != 1 || !strings.Contains(r.progress.Warnings[0].Message, ": "+by+" has set it back 2 times") {
			t.Errorf("%s: %v", by, r.progress.Warnings)
		}
	}
}

func manager(name string, minute int, fields string) metav1.ManagedFieldsEntry {
	at := metav1.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)
	return metav1.ManagedFieldsEntry{Manager: name, Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

// If the step stops between the change and its record, the next call records it. What others revert afterwards is
// counted as usual.
func TestAChangeThatWasNotNoted(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	s.RolledOut(o)
	s.run(plan.AutoscalerOff, true)
	clear(s.contests.Kept)
	if s.run(plan.AutoscalerOff, false); len(s.contests.Kept) != 1 {
		t.Errorf("noted %v", s.contests.Kept)
	}
}
