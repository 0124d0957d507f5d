package store

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// The times of the parameters show whether a tree was read after a write. Events have times to the second.
func TestTheTreeHasAWrite(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		written  string
		modified time.Duration
		there    bool
		want     bool
	}{
		{"Update 2026-01-02T03:04:05Z a", 300 * time.Millisecond, true, true},
		{"Update 2026-01-02T03:04:05Z a", time.Minute, true, true},
		{"Update 2026-01-02T03:04:05Z a", -time.Millisecond, true, false},
		{"Create 2026-01-02T03:04:05Z a", 0, true, true},
		{"Create 2026-01-02T03:04:05Z a", 0, false, false},
		{"Delete 2026-01-02T03:04:05Z a", 0, false, true},
		{"Delete 2026-01-02T03:04:05Z a", -time.Minute, true, false},
		{"Delete 2026-01-02T03:04:05Z a", time.Minute, true, true},
		{"Create 2026-01-02T03:04:05Z folder/with a space", 0, false, false},
	} {
		w, ok := readWritten(c.written)
		if !ok || !w.At.Equal(at) {
			t.Fatalf("%s: %+v", c.written, w)
		}
		tree := Tree{Modified: map[string]time.Time{"other": at}}
		if c.there {
			tree.Modified[w.Name] = at.Add(c.modified)
		}
		if got := tree.Has(w); got != c.want {
			t.Errorf("%s, modified %v later, there %v: %v", c.written, c.modified, c.there, got)
		}
	}
	for _, text := range []string{"", "Update", "Update 2026-01-02T03:04:05Z", "Update today a"} {
		if w, ok := readWritten(text); ok {
			t.Errorf("%q is read as %+v", text, w)
		}
	}
}

func TestReadTree(t *testing.T) {
	cloud := awsfake.New()
	want := map[string]string{"folder/inner": "1", "secret": ""}
	for i := range 25 { // three pages
		name := fmt.Sprintf("p%02d", i)
		want[name], cloud.SSM.Values["/sawhorse/racks/demo/params/"+name] = name, name
	}
	for name, value := range map[string]string{
		"demo/params/folder/inner": "1", "demo/params/secret": "x", "demo/status": "{}", "demo2/params/p": "1", "dem/params/p": "1",
	} {
		cloud.SSM.Values["/sawhorse/racks/"+name] = value
	}
	cloud.SSM.Secure["/sawhorse/racks/demo/params/secret"] = true
	got, err := ReadTree(t.Context(), cloud.SSM, "/sawhorse/racks/demo/params")
	if err != nil || !reflect.DeepEqual(got.Values, want) || !reflect.DeepEqual(got.Secure, []string{"secret"}) ||
		len(got.Modified) != len(want) {
		t.Errorf("%+v, %v", got, err)
	}
	if !reflect.DeepEqual(slices.Sorted(maps.Keys(got.Versions)), slices.Sorted(maps.Keys(want))) || got.Versions["p07"] != 1 {
		t.Errorf("versions %v", got.Versions)
	}
	_, err = cloud.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{
		Name: new("/sawhorse/racks/demo/params/p07"), Value: new("p07"), Overwrite: new(true),
	})
	must(t, err)
	if got, err := ReadTree(t.Context(), cloud.SSM, "/sawhorse/racks/demo/params"); err != nil || got.Versions["p07"] != 2 {
		t.Errorf("after a write of the same value: %v, %v", got.Versions, err)
	}
	cloud.Forget()
	cloud.FailAt(2, awsfake.Throttling)
	_, err = ReadTree(t.Context(), cloud.SSM, "/sawhorse/racks/demo/params")
	keepsCause(t, err, "parameters below /sawhorse/racks/demo/params: ")
}

// The writers of a rack's parameters may write ten thousand of them. Reading stops as soon as there are too many.
func TestACrowdedTreeIsNotReadToItsEnd(t *testing.T) {
	cloud := awsfake.New()
	for i := range 1000 {
		cloud.SSM.Values[fmt.Sprintf("/sawhorse/racks/demo/params/p%04d", i)] = "x"
	}
	got, err := ReadTree(t.Context(), cloud.SSM, "/sawhorse/racks/demo/params")
	if err != nil || len(got.Values) <= params.MostNames || len(cloud.Made()) > params.MostNames/10+1 {
		t.Errorf("%d names in %d calls, %v", len(got.Values), len(cloud.Made()), err)
	}
}

// A step's outputs are added to those of other steps, in any run. The latest value counts.
func TestNotedOutputs(t *testing.T) {
	s, _ := store()
	for _, outputs := range []map[string]string{{"a": "1", "b": "1"}, {"b": "2"}, {"a": ""}} {
		must(t, s.NoteOutputs(t.Context(), "demo", outputs))
	}
	must(t, s.NoteOutputs(t.Context(), "other", map[string]string{"b": "3"}))
	if got, err := s.Outputs(t.Context(), "demo"); err != nil || !maps.Equal(got, map[string]string{"a": "", "b": "2"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// Every pass of a step returns its outputs, and a step that waits returns the same warnings each time.
func TestWhatIsRecordedAlreadyIsNotWrittenAgain(t *testing.T) {
	s, cloud := store()
	outputs := map[string]string{"url": "u", "old": ""}
	warned := StepRecord{Step: "queue", Note: "waits", Warnings: []params.Problem{{Parameter: "rack", Message: "w"}}}
	for _, c := range []struct {
		what   string
		writes int
		note   func() error
	}{
		{"outputs", 1, func() error { return s.NoteOutputs(t.Context(), "demo", outputs) }},
		{"the same outputs", 0, func() error { return s.NoteOutputs(t.Context(), "demo", outputs) }},
		{"some of them", 0, func() error { return s.NoteOutputs(t.Context(), "demo", map[string]string{"url": "u"}) }},
		{"another output", 1, func() error { return s.NoteOutputs(t.Context(), "demo", map[string]string{"arn": "a"}) }},
		{"one that is removed", 1, func() error { return s.NoteOutputs(t.Context(), "demo", map[string]string{"arn": ""}) }},
		{"a step's warnings", 1, func() error { return s.NoteStep(t.Context(), "demo", 7, clock, warned) }},
		{"the same warnings", 0, func() error { return s.NoteStep(t.Context(), "demo", 7, clock, warned) }},
		{"the same warnings of another pass", 1, func() error { return s.NoteStep(t.Context(), "demo", 8, clock, warned) }},
		{"a change", 1, func() error {
			changed := warned
			changed.Changes = []outcome.Change{{Subject: "queue", Action: "created"}}
			return s.NoteStep(t.Context(), "demo", 8, clock, changed)
		}},
		{"no warnings any more", 1, func() error { return s.NoteStep(t.Context(), "demo", 8, clock, StepRecord{Step: "queue"}) }},
	} {
		cloud.Forget()
		must(t, c.note())
		if got := cloud.Writes(); len(got) != c.writes {
			t.Errorf("%s: writes %v, want %d", c.what, got, c.writes)
		}
	}
}

func TestOutputs(t *testing.T) {
	cloud := awsfake.New()
	p := Published{SSM: cloud.SSM, Paths: ownership.Paths{Prefix: "/sawhorse"}}
	write := func(wanted map[string]string, writes ...string) {
		t.Helper()
		cloud.Forget()
		writing(t, cloud, func(w *resource.Writer) error { return p.WriteOutputs(t.Context(), w, "demo", wanted) })
		if got := cloud.Changes(); !slices.Equal(got, writes) {
			t.Errorf("%v: writes %v, want %v", wanted, got, writes)
		}
	}
	const outputs = "/sawhorse/racks/demo/outputs"
	all := map[string]string{"interruption_queue_url": "https://q", "karpenter_role_arn": "a", "karpenter_version_before": ""}
	write(nil)
	write(all, "SSM.PutParameter "+outputs)
	write(all)
	if want := `{"interruption_queue_url":"https://q","karpenter_role_arn":"a"}`; cloud.SSM.Values[outputs] != want {
		t.Errorf("the parameter is %s, want %s", cloud.SSM.Values[outputs], want)
	}
	all["karpenter_role_arn"] = "b"
	write(all, "SSM.PutParameter "+outputs)
	all["karpenter_role_arn"], all["interruption_queue_url"] = "", ""
	write(all, "SSM.DeleteParameter "+outputs)
	write(all)
	if len(cloud.SSM.Values) > 0 {
		t.Errorf("left: %v", cloud.SSM.Values)
	}
}

// The audit compares the parameter with the record: whatever else it holds is found, and one that was to go.
func TestLiveOutputs(t *testing.T) {
	cloud := awsfake.New()
	paths := ownership.Paths{Prefix: "/sawhorse"}
	for _, c := range []struct {
		live     string
		recorded map[string]string
		want     string
	}{
		{"", nil, ""},
		{"", map[string]string{"a": ""}, ""},
		{`{"a":"1"}`, map[string]string{"a": "1", "b": ""}, ""},
		{"", map[string]string{"a": "1"}, "parameter /sawhorse/racks/demo/outputs"},
		{`{"a":"1"}`, map[string]string{"a": ""}, "parameter /sawhorse/racks/demo/outputs"},
		{`{"a":"1","b":"2"}`, map[string]string{"a": "1"}, "parameter /sawhorse/racks/demo/outputs"},
	} {
		cloud.SSM.Values = map[string]string{"/sawhorse/racks/demo/params/outputs": "x", paths.Status("demo"): "s"}
		if c.live != "" {
			cloud.SSM.Values[paths.Outputs("demo")] = c.live
		}
		cloud.Forget()
		live, err := ReadLive(t.Context(), cloud.SSM, paths, "demo")
		if got := live.Differs(Reported{}.Wrote(Status{}, "s"), c.recorded); err != nil || got != c.want {
			t.Errorf("%q of %v: %q, %v", c.live, c.recorded, got, err)
		}
		if made := cloud.Made(); len(made) != 1 {
			t.Errorf("calls %v: status and outputs are read together", made)
		}
	}
}

// writing calls do as a report does.
func writing(t *testing.T, cloud *awsfake.Cloud, do func(*resource.Writer) error) {
	t.Helper()
	w, err := resource.Open(t.Context(), &Store{DB: cloud.Table, Name: "sawhorse"}, "demo", "report", cloud.Now)
	must(t, err)
	_, err = w.End(t.Context(), do(w))
	must(t, err)
}

// An output that is set and removed within seconds is removed, and the other way round, although Parameter Store shows the
// state before. So are the outputs of a rack that is forgotten.
func TestOutputsAreTakenBack(t *testing.T) {
	cloud := awsfake.New()
	p := Published{SSM: cloud.SSM, Paths: ownership.Paths{Prefix: "/sawhorse"}}
	const outputs = "/sawhorse/racks/demo/outputs"
	for _, was := range []string{"", "v"} {
		for n, forgotten := range []bool{false, true} {
			cloud.Lag.Parameters = 0
			write := func(value string) {
				writing(t, cloud, func(w *resource.Writer) error {
					return p.WriteOutputs(t.Context(), w, "demo", map[string]string{"url": value})
				})
			}
			write(was)
			cloud.Pass(time.Hour)
			cloud.Lag.Parameters = 40 * time.Second
			write(map[string]string{"": "v", "v": ""}[was])
			want := map[string]string{"": "", "v": `{"url":"v"}`}[was]
			if forgotten {
				want = ""
				writing(t, cloud, func(w *resource.Writer) error { return p.Forget(t.Context(), w, "demo") })
			} else {
				write(was)
			}
			if got := cloud.SSM.Values[outputs]; got != want {
				t.Errorf("%d: %q, then another and back: %q", n, was, got)
			}
			cloud.Pass(time.Hour)
		}
	}
}

// Nothing that Sawhorse writes may start a pass.
func TestPublishedIsNeverUnderParams(t *testing.T) {
	cloud := awsfake.New()
	p := Published{SSM: cloud.SSM, Paths: ownership.Paths{Prefix: "/sawhorse"}}
	must(t, p.WriteStatus(t.Context(), "demo", "{}"))
	must(t, p.WriteStatus(t.Context(), "demo", `{"a":1}`))
	writing(t, cloud, func(w *resource.Writer) error {
		return p.WriteOutputs(t.Context(), w, "demo", map[string]string{"url": "u"})
	})
	for name := range cloud.SSM.Values {
		if strings.Contains(name, "/params/") {
			t.Errorf("%s", name)
		}
	}
	if cloud.SSM.Values["/sawhorse/racks/demo/status"] != `{"a":1}` {
		t.Errorf("%v", cloud.SSM.Values)
	}
}
