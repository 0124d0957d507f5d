package plan_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// What a release has written, a later one reads whole, until the format has another number. If this fails for the sample of
// the format that is written, a field was renamed, removed or added: give the format another number, which the release
// before must read already, or leave the field out where it is empty.
func TestSamplesOfTheFormats(t *testing.T) {
	samples, err := filepath.Glob("testdata/formats/*.json")
	if err != nil || len(samples) == 0 {
		t.Fatal(samples, err)
	}
	for _, file := range samples {
		sample, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := plan.Read(sample)
		if err != nil || got == nil {
			t.Errorf("%s is not read: %v", file, err)
		} else if file == fmt.Sprintf("testdata/formats/%d.json", plan.Format) && !bytes.Equal(text(t, got), sample) {
			t.Errorf("%s is not what its plan is written as", file)
		}
	}
	last := filepath.Base(samples[len(samples)-1])
	number, err := strconv.Atoi(strings.TrimSuffix(last, ".json"))
	if err != nil || number < plan.Format {
		t.Fatalf("no sample of format %d: %v", plan.Format, samples)
	}
	if p, err := plan.Read(fmt.Appendf(nil, `{"format":%d,"rack":"demo"}`, number+1)); p != nil || err != nil {
		t.Errorf("format %d is read, without a sample in testdata/formats", number+1)
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
