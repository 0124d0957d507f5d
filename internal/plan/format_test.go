package plan_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// testdata/format1 has golden plans as the last version with format 1 stored them. Converted, they are the plans that
// this version makes.
func TestPlansOfFormat1AreConverted(t *testing.T) {
	files, err := filepath.Glob("testdata/format1/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		stored, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read, err := plan.Read(stored)
		if err != nil || read == nil {
			t.Errorf("%s: %v, %v", file, read, err)
			continue
		}
		read.Access.Rights = nil // as in the golden plans
		want := outcome(t, strings.TrimSuffix(filepath.Base(file), ".json")).Plan
		// What a step is for may be put into other words since. A step has the words with which it was stored.
		for i, s := range want.Steps {
			if i < len(read.Steps) && read.Steps[i].Name == s.Name {
				read.Steps[i].Why = s.Why
			}
		}
		if got, want := text(t, read), text(t, want); !bytes.Equal(got, want) {
			t.Errorf("%s: converted it is\n%s\nand this version makes\n%s", file, got, want)
		}
	}
}

// A step that this version does not have stays as it is: a pass that is under way may still call for it.
func TestAStepOfFormat1ThatIsNoMore(t *testing.T) {
	p, err := plan.Read([]byte(`{"format":1,"rack":"demo","steps":[{"name":"former","function":"former","fingerprint":"f"}]}`))
	if err != nil || p == nil || len(p.Steps) != 1 || p.Steps[0].Fingerprint != "f" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A pass of an earlier version may be under way with a plan that has no rights and no names of CRDs.
func TestAPlanOfThisFormatIsCompleted(t *testing.T) {
	stored := outcome(t, "enable-with-builds").Plan
	stored.Access.Rights, stored.Controller.CRDs.Definitions = nil, nil
	got, err := plan.Read(text(t, stored))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Access.Rights["nodepools"]) == 0 || len(got.Controller.CRDs.Definitions) != 4 {
		t.Errorf("rights %v, CRDs %v", got.Access.Rights, got.Controller.CRDs.Definitions)
	}
	if !slices.Equal(got.Steps, stored.Steps) {
		t.Error("its fingerprints have changed")
	}
	later, err := plan.Read([]byte(`{"format":2,"controller":{"crds":{"present":true,"version":"1.99.0"}}}`))
	if err != nil || later == nil || len(later.Access.Rights)+len(later.Controller.CRDs.Definitions) > 0 {
		t.Errorf("%+v, %v", later, err)
	}
}

func TestReadsItsOwnFormat(t *testing.T) {
	want := outcome(t, "enable-with-builds").Plan
	want.Access.Rights = plan.Rights()
	got, err := plan.Read(text(t, want))
	if err != nil || !bytes.Equal(text(t, got), text(t, want)) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestFormatsThatNobodyKnows(t *testing.T) {
	for _, stored := range []string{`{}`, `{"format":0,"rack":"demo"}`, `{"format":3,"rack":"demo","queue":[]}`} {
		if p, err := plan.Read([]byte(stored)); p != nil || err != nil {
			t.Errorf("%s: %v, %v", stored, p, err)
		}
	}
	for _, stored := range []string{``, `{"format":2,"queue":[]}`, `{"format":1,"queue":[]}`} {
		if p, err := plan.Read([]byte(stored)); p != nil || err == nil {
			t.Errorf("%q: %v, %v", stored, p, err)
		}
	}
}
