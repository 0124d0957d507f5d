package plan_test

import (
	"bytes"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func TestReadsItsOwnFormat(t *testing.T) {
	want := outcome(t, "enable-with-builds").Plan
	want.Access.Rights = plan.Rights()
	got, err := plan.Read(text(t, want))
	if err != nil || !bytes.Equal(text(t, got), text(t, want)) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestFormatsThatNobodyKnows(t *testing.T) {
	for _, stored := range []string{`{}`, `{"format":0,"rack":"demo"}`, `{"format":1,"queue":[]}`, `{"format":3,"rack":"demo","queue":[]}`} {
		if p, err := plan.Read([]byte(stored)); p != nil || err != nil {
			t.Errorf("%s: %v, %v", stored, p, err)
		}
	}
	for _, stored := range []string{``, `{"format":2,"queue":[]}`} {
		if p, err := plan.Read([]byte(stored)); p != nil || err == nil {
			t.Errorf("%q: %v, %v", stored, p, err)
		}
	}
}
