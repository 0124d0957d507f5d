package store

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

var (
	noon  = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Second)
)

func TestWhatAChangeAsksFor(t *testing.T) {
	long := strings.Repeat("v", MaxValue)
	for _, c := range []struct {
		what, text string
		set        map[string]string
		unset      []string
		note       string
		force      []string
		malformed  []string // paths, each with a part of the message
	}{
		{what: "both", text: `{"set":{"karpenter_cpu_limit":"200","node_disk":"30"},"unset":["karpenter_arch"],"note":"why"}`,
			set: map[string]string{"karpenter_cpu_limit": "200", "node_disk": "30"}, unset: []string{"karpenter_arch"}, note: "why"},
		{what: "nothing", text: `{}`},
		{what: "empty ones", text: `{"set":{},"unset":[]}`},
		{what: "base64", text: "eyJzZXQiOnsiYSI6IjEifX0=", set: map[string]string{"a": "1"}},
		// Parameter Store cannot store an empty text.
		{what: "two words for unset", text: `{"set":{"b":"","a":"unset","c":"1"},"unset":["z"]}`, set: map[string]string{"c": "1"},
			unset: []string{"a", "b", "z"}},
		{what: "the longest value", text: `{"set":{"a":"` + long + `"}}`, set: map[string]string{"a": long}},

		{what: "a value that is too long", text: `{"set":{"a":"` + long + `v"}}`, malformed: []string{"set.a: has 8193 bytes"}},
		{what: "no JSON", text: `{"set":`, malformed: []string{": ends too early"}},
		{what: "neither JSON nor base64", text: `unset`, malformed: []string{": is neither JSON nor padded base64"}},
		{what: "a list", text: `[]`, malformed: []string{": is no JSON object"}},
		{what: "a name twice", text: `{"set":{"a":"1","a":"2"}}`, malformed: []string{": set.a is there twice"}},
		{what: "an unknown field", text: `{"dryRun":true,"Set":{}}`, malformed: []string{"Set: did you mean set?", "dryRun: leave it out"}},
		{what: "set as a list", text: `{"set":["a"]}`, malformed: []string{"set: set is no object"}},
		{what: "set as null", text: `{"set":null}`, malformed: []string{"set: set is no object"}},
		{what: "several values that are no texts", text: `{"set":{"b":1,"a":"1","c":null,"d":{"secret":1}}}`,
			malformed: []string{"set.b: set.b is no text", "set.c: set.c is no text", "set.d: set.d is no text"}},
		{what: "unset as a text", text: `{"unset":"a"}`, malformed: []string{"unset: unset is no list"}},
		{what: "null in unset", text: `{"unset":["a",null]}`, malformed: []string{"unset[1]: unset[1] is no text"}},
		{what: "unset twice", text: `{"unset":["a","a"]}`, malformed: []string{`unset[1]: names "a" a second time`}},
		{what: "a name in both", text: `{"set":{"a":"1"},"unset":["a"]}`, malformed: []string{`unset[0]: names "a" a second time`}},
		{what: "words", text: `{"force":["room","new-defaults"]}`, force: []string{"room", "new-defaults"}},
		{what: "words that there are not", text: `{"force":["room","rooms",7]}`,
			malformed: []string{`force[1]: the word "rooms"; allowed are room`, "force[2]: allowed are room"}},
		{what: "force as a flag", text: `{"force":true}`, malformed: []string{"force: force is no list"}},
		{what: "a note that is no text", text: `{"note":7}`, malformed: []string{"note: note is no text"}},
		{what: "a long note", text: `{"note":"` + long[:maxNote+1] + `"}`, malformed: []string{"note: note has 257 bytes"}},
	} {
		got := ParseChange(c.text)
		if !maps.Equal(got.Set, c.set) || !slices.Equal(got.Unset, c.unset) || got.Note != c.note ||
			!slices.Equal(got.Force, c.force) || len(got.Malformed) != len(c.malformed) {
			t.Errorf("%s: %.200v", c.what, got)
			continue
		}
		for i, p := range got.Malformed {
			path, part, _ := strings.Cut(c.malformed[i], ": ")
			if p.Parameter != "change" || p.Path != path || !strings.Contains(p.Message, part) || strings.Contains(p.Message, "secret") {
				t.Errorf("%s: %+v, want %s", c.what, p, c.malformed[i])
			}
		}
	}
}

// version is a version of the parameter change that sets one parameter.
func version(number int64, at time.Time, name, value string) Version {
	return Version{Text: `{"set":{"` + name + `":"` + value + `"}}`, Number: number, Modified: at}
}

// The versions are taken once, in their order; those of a parameter that was made again are new.
func TestVersionsAreTakenOnce(t *testing.T) {
	var c Changes
	first, second := version(1, noon, "a", "1"), version(2, noon, "a", "2")
	for _, take := range []struct {
		versions []Version
		most     int
		all      bool
		list     int
	}{
		{[]Version{first}, 5, true, 1},
		{[]Version{first}, 5, true, 1},
		{[]Version{first, second, version(3, later, "a", "3"), version(4, later, "a", "4")}, 2, false, 3},
		{[]Version{first, second, version(3, later, "a", "3"), version(4, later, "a", "4")}, 2, true, 4},
		{[]Version{version(1, later.Add(time.Second), "a", "5")}, 2, true, 5},
		{[]Version{second}, 2, true, 5}, // a replica that is behind
	} {
		if all := c.Take(take.versions, take.most); all != take.all || len(c.List) != take.list {
			t.Fatalf("%+v: all %v, %+v", take, all, c.List)
		}
	}
	for i, change := range c.List {
		if want := string(rune('1' + i)); change.Set["a"] != want || change.State != ChangeRequested {
			t.Errorf("%d: %+v", i, change)
		}
	}
}

// taken returns changes that were accepted, one after the other, over a tree.
func taken(tree Tree, texts ...string) Changes {
	var c Changes
	for i, text := range texts {
		c.Take([]Version{{Text: text, Number: int64(i + 1), Modified: noon.Add(time.Duration(i) * time.Second)}}, 1)
		c.Accept(i, c.Overlay(tree, i, nil, noon), noon)
	}
	return c
}

func TestOverlay(t *testing.T) {
	tree := Tree{
		Values: map[string]string{"a": "old", "b": "old", "c": "", "d": "old", "e": "same"}, Secure: []string{"c"},
		Versions: map[string]int64{"a": 5, "b": 1, "c": 1, "d": 3, "e": 4},
	}
	before, err := json.Marshal(tree)
	must(t, err)
	c := taken(tree, `{"set":{"a":"1","e":"same","new":"1"},"unset":["b"]}`, `{"set":{"a":"2","b":"2","c":"2"},"unset":["gone"]}`)
	got := c.Overlay(tree, 2, nil, noon)
	want := Tree{
		Values: map[string]string{"a": "2", "b": "2", "c": "2", "d": "old", "e": "same", "gone": "unset", "new": "1"}, Secure: []string{"c"},
		Versions: map[string]int64{"a": 7, "b": 3, "c": 2, "d": 3, "e": 4, "new": 1}, // as many more as there are writes to come
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	got.Secure[0] = "x"
	if after, err := json.Marshal(tree); err != nil || string(after) != string(before) {
		t.Errorf("the tree itself became %s", after)
	}
}

// at returns a tree with one parameter.
func at(value string, version int64) Tree {
	if version == 0 {
		return Tree{Values: map[string]string{}, Versions: map[string]int64{}}
	}
	return Tree{Values: map[string]string{"a": value}, Versions: map[string]int64{"a": version}}
}

// What a write lays over its parameter, from its acceptance over version 5 to minutes after its end.
func TestWhatAWriteLaysOverItsParameter(t *testing.T) {
	accepted := func() Changes { return taken(at("old", 5), `{"set":{"a":"new"}}`) }
	written := func() Changes {
		c := accepted()
		c.List[0].Writes[0].Done, c.List[0].Writes[0].Version = true, 6
		return c
	}
	givenUp := func() Changes {
		c := written()
		c.GiveUp(0, noon)
		return c
	}
	putBack := func() Changes {
		c := givenUp()
		c.List[0].Writes[0].PutBack, c.List[0].Writes[0].Version = true, 7
		return c
	}
	ended := func(of func() Changes) Changes {
		c := of()
		c.End(0, noon)
		return c
	}
	deleted := []Written{{Operation: "Delete", At: later, Name: "a"}}
	made := func() Changes {
		c := taken(at("", 0), `{"set":{"a":"new"}}`)
		c.List[0].Writes[0].Done, c.List[0].Writes[0].Version = true, 1
		return c
	}
	endedAfter := made()
	endedAfter.End(0, later.Add(2*time.Second))
	createdAgain := at("theirs", 1) // its event took the place of the deletion's
	createdAgain.Modified = map[string]time.Time{"a": noon.Add(time.Millisecond)}
	for _, c := range []struct {
		what    string
		changes Changes
		read    Tree
		deleted []Written
		now     time.Time
		want    string
		version int64
	}{
		{what: "not written yet", changes: accepted(), read: at("old", 5), want: "new", version: 6},
		{what: "written", changes: written(), read: at("new", 6), want: "new", version: 6},
		{what: "written, and read from a replica that is behind", changes: written(), read: at("old", 5), want: "new", version: 6},
		{what: "written again by somebody else", changes: written(), read: at("theirs", 7), want: "theirs", version: 7},
		{what: "written, and deleted since", changes: written(), read: at("", 0), deleted: deleted, version: 0},
		{what: "given up", changes: givenUp(), read: at("new", 6), want: "old", version: 7},
		{what: "given up, and behind", changes: givenUp(), read: at("old", 5), want: "old", version: 7},
		{what: "given up, and written by somebody else", changes: givenUp(), read: at("theirs", 7), want: "theirs", version: 7},
		{what: "put back", changes: putBack(), read: at("old", 7), want: "old", version: 7},
		{what: "put back, and behind", changes: putBack(), read: at("new", 6), want: "old", version: 7},
		{what: "ended, and behind", changes: ended(written), read: at("old", 5), want: "new", version: 6},
		{what: "written, and not there any more", changes: written(), read: at("", 0), version: 0},
		{what: "written, deleted, and created again", changes: written(), read: createdAgain, want: "theirs", version: 1},
		{what: "made, and behind", changes: made(), read: at("", 0), want: "new", version: 1},
		{what: "made, and deleted since", changes: made(), read: at("", 0), deleted: deleted, version: 0},
		{what: "made, ended, and deleted since", changes: ended(made), read: at("", 0), deleted: deleted, version: 0},
		{what: "deleted, and ended since", changes: endedAfter, read: at("", 0), deleted: deleted, version: 0},
		{what: "ended, deleted, and created again", changes: ended(written), read: createdAgain, want: "theirs", version: 1},
		{what: "put back and ended, and behind", changes: ended(putBack), read: at("new", 6), want: "old", version: 7},
		{what: "given up and not put back", changes: ended(givenUp), read: at("new", 6), want: "new", version: 6},
		{what: "ended long ago", changes: ended(written), read: at("old", 5), now: noon.Add(4 * time.Minute), want: "old", version: 5},
	} {
		if c.now.IsZero() {
			c.now = later
		}
		c.changes.Supersede(c.read, c.deleted)
		got := c.changes.Overlay(c.read, 1, c.deleted, c.now)
		if got.Values["a"] != c.want || got.Versions["a"] != c.version {
			t.Errorf("%s: %v %v, want %s %d", c.what, got.Values, got.Versions, c.want, c.version)
		}
	}
}

// Two changes may have written a parameter that a replica does not have yet.
func TestAReplicaFromBeforeTwoChanges(t *testing.T) {
	c := taken(at("", 0), `{"set":{"a":"first"}}`, `{"set":{"a":"second"}}`)
	for i := range c.List {
		c.List[i].Writes[0].Done, c.List[i].Writes[0].Version = true, int64(i+1)
	}
	if c.Supersede(at("", 0), nil) {
		t.Errorf("superseded: %+v", c.List)
	}
	if got := c.Overlay(at("", 0), 2, nil, later); got.Values["a"] != "second" || got.Versions["a"] != 2 {
		t.Errorf("%v %v", got.Values, got.Versions)
	}
}

// A call may be stopped between a write and its record.
func TestAWriteThatWasNotRecorded(t *testing.T) {
	for _, c := range []struct {
		read   Tree
		done   bool
		edited bool
	}{
		{read: at("old", 5)},
		{read: at("new", 6), done: true},
		{read: at("theirs", 6), edited: true},
		{read: at("new", 7), edited: true},
		{read: at("old", 4)}, // a replica that is behind
	} {
		changes := taken(at("old", 5), `{"set":{"a":"new"}}`)
		changes.Recognize(c.read)
		if w := changes.List[0].Writes[0]; w.Done != c.done || w.Done && w.Version != 6 || len(changes.List[0].Edited(c.read)) > 0 != c.edited {
			t.Errorf("%v: %+v, edited %v", c.read, w, changes.List[0].Edited(c.read))
		}
	}
}

// What somebody else has written after a change was given up is theirs, though it is the value that the change had.
func TestAWriteAfterAChangeWasGivenUp(t *testing.T) {
	changes := taken(at("old", 5), `{"set":{"a":"new"}}`)
	changes.GiveUp(0, noon)
	read := at("new", 6)
	for _, c := range []struct {
		modified time.Time
		done     bool
	}{{noon.Add(-time.Second), true}, {noon.Add(time.Second), false}} {
		recognized := changes
		recognized.List = slices.Clone(changes.List)
		read.Modified = map[string]time.Time{"a": c.modified}
		recognized.Recognize(read)
		if done := recognized.List[0].Writes[0].Done; done != c.done {
			t.Errorf("written at %s: done %v", c.modified, done)
		}
	}
}

// Whether a change is older than what its parameter has.
func TestAWriteAfterAChange(t *testing.T) {
	read := func(value string, version int64, modified time.Time) Tree {
		tree := at(value, version)
		tree.Modified = map[string]time.Time{"a": modified}
		return tree
	}
	before, after := noon.Add(-time.Second), noon.Add(time.Second)
	removed := func(operation string, at time.Time) []Written {
		return []Written{{Operation: operation, At: at, Name: "a"}}
	}
	ours := func(theirs time.Time) *Write {
		return &Write{Name: "a", Value: "1", Before: "theirs", Done: true, Version: 6, Theirs: theirs}
	}
	for _, c := range []struct {
		what    string
		read    Tree
		deleted []Written
		other   *Write
		want    bool
	}{
		{what: "before it", read: read("old", 5, before)},
		{what: "at the same time", read: read("old", 5, noon)},
		{what: "after it", read: read("old", 5, after), want: true},
		{what: "after it, the same value", read: read("new", 5, after)},
		{what: "deleted before it", read: at("", 0), deleted: removed("Delete", noon)},
		{what: "deleted after it", read: at("", 0), deleted: removed("Delete", after), want: true},
		{what: "deleted and made again before it", read: read("old", 1, before), deleted: removed("Delete", after)},
		{what: "an update that is not read yet", read: at("", 0), deleted: removed("Update", after)},
		{what: "another change's", read: read("1", 6, after), other: ours(time.Time{})},
		{what: "another change's, which is not read yet", read: read("old", 5, after), other: ours(time.Time{})},
		{what: "after another change's", read: read("theirs", 7, after), other: ours(time.Time{}), want: true},
		{what: "at the same time as another change's", read: read("1", 6, after), other: ours(after), want: true},
		{what: "at the same time as another change's, and before it", read: read("1", 6, after), other: ours(before)},
		{what: "another change found it so", read: read("1", 5, after), other: &Write{Name: "a", Value: "1", Done: true}, want: true},
		{what: "another change is to write it", read: read("old", 5, after), other: &Write{Name: "a", Value: "1", Base: 5}, want: true},
		{what: "another change has written something else", read: read("old", 5, after),
			other: &Write{Name: "b", Value: "1", Done: true, Version: 6}, want: true},
	} {
		var changes Changes
		changes.Take([]Version{version(1, noon, "a", "new")}, 1)
		if c.other != nil {
			changes.List = slices.Insert(changes.List, 0, Change{State: ChangeGivenUp, Writes: []Write{*c.other}})
		}
		if got := changes.Outdated(len(changes.List)-1, c.read, c.deleted); (len(got) > 0) != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	var unset Changes
	unset.Take([]Version{{Text: `{"unset":["a"]}`, Number: 1, Modified: noon}}, 1)
	if got := unset.Outdated(0, at("", 0), removed("Delete", after)); len(got) > 0 {
		t.Errorf("deleted and unset: %v", got)
	}
}

// Two changes were accepted over the version that putting a third one back would have made.
func TestTheVersionsOfChangesOnTopOfOneThatEnds(t *testing.T) {
	c := taken(at("old", 5), `{"set":{"a":"1"}}`, `{"set":{"a":"2"}}`, `{"set":{"a":"3"}}`)
	c.List[0].Writes[0].Made(5, 6, noon)
	c.GiveUp(0, noon)
	for i := 1; i < 3; i++ {
		c.Accept(i, c.Overlay(at("1", 6), i, nil, noon), noon)
	}
	bases := func(want ...int64) {
		t.Helper()
		if got := []int64{c.List[1].Writes[0].Base, c.List[2].Writes[0].Base}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	bases(7, 8)
	c.End(0, noon)
	bases(6, 7)
	if edited := c.List[1].Edited(at("theirs", 7)); len(edited) != 1 {
		t.Errorf("edited %v", edited)
	}
	c.List[1].Writes[0].Made(6, 8, noon) // it was made twice
	c.End(1, noon)
	bases(6, 8)
}

// The status tells of the last change only, and of a change that is given up what is left of it.
func TestWhatBecameOfTheLastChange(t *testing.T) {
	tree := at("old", 5)
	c := taken(tree, `{"set":{"a":"1"},"note":"first"}`, `{"set":{"b":"1"},"note":"second"}`)
	problem := params.Problem{Parameter: "a", Message: "no"}
	wants := func(what string, want ChangeStatus) {
		t.Helper()
		if !reflect.DeepEqual(*c.Last, want) {
			t.Errorf("%s: %+v, want %+v", what, *c.Last, want)
		}
	}
	c.GiveUp(0, noon, problem)
	second := noon.Add(time.Second)
	wants("the first one is given up", ChangeStatus{Version: 2, Modified: second, Outcome: ChangeWriting, Note: "second"})
	if c.List[1].State != ChangeRequested || len(c.List[1].Writes) > 0 {
		t.Errorf("what was accepted on top of it is %+v", c.List[1])
	}
	c.Accept(1, tree, noon)
	c.GiveUp(1, noon, problem)
	c.End(1, noon, problem)
	both := []params.Problem{problem, problem}
	wants("the second one too", ChangeStatus{Version: 2, Modified: second, Outcome: ChangeIsGivenUp, Problems: both, Note: "second"})
	c.Take([]Version{version(3, noon.Add(time.Minute), "a", "3")}, 1)
	c.Refuse(2, []params.Problem{problem})
	wants("a third one is refused", ChangeStatus{
		Version: 3, Modified: noon.Add(time.Minute), Outcome: ChangeRefused, Problems: []params.Problem{problem},
	})
	if len(c.List) != 2 || !c.Writing() {
		t.Errorf("%+v", c.List)
	}

	again := taken(tree, `{"set":{"a":"1"},"note":"first"}`)
	again.Take([]Version{version(1, noon.Add(time.Minute), "a", "3")}, 1) // the parameter was deleted, and made again
	again.Refuse(1, []params.Problem{problem})
	again.GiveUp(0, noon, problem)
	again.End(0, noon, problem)
	if again.Last.Outcome != ChangeRefused || len(again.Last.Problems) != 1 {
		t.Errorf("the end of an earlier version 1 is told of the later one: %+v", *again.Last)
	}
}

// Of two passes that have read the same record, only one can save it.
func TestChangesAreSavedByOne(t *testing.T) {
	s, cloud := store()
	mine, err := s.Changes(t.Context(), "demo")
	must(t, err)
	theirs, err := s.Changes(t.Context(), "demo")
	must(t, err)
	mine.Take([]Version{version(1, noon, "a", "1")}, 1)
	must(t, s.SaveChanges(t.Context(), "demo", &mine, noon))
	again := mine
	must(t, s.SaveChanges(t.Context(), "demo", &mine, noon))
	must(t, s.SaveChanges(t.Context(), "demo", &again, noon)) // as the SDK does, if an answer is lost
	if err := s.SaveChanges(t.Context(), "demo", &theirs, noon); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("an older record replaces a newer one: %v", err)
	}
	mine.Accept(0, at("old", 5), noon)
	mine.End(0, noon)
	must(t, s.SaveChanges(t.Context(), "demo", &mine, noon.Add(keepEnded)))
	read, err := s.Changes(t.Context(), "demo")
	must(t, err)
	if !reflect.DeepEqual(read, mine) {
		t.Errorf("%+v, want %+v", read, mine)
	}
	must(t, s.SaveChanges(t.Context(), "demo", &mine, noon.Add(keepEnded+time.Second)))
	read, err = s.Changes(t.Context(), "demo")
	if err != nil || len(read.List) > 0 || read.Version != 1 || read.Last.Outcome != ChangeWritten {
		t.Errorf("%+v, %v", read, err)
	}
	cloud.FailAt(1, awsfake.Throttling)
	_, err = s.Changes(t.Context(), "demo")
	keepsCause(t, err, "rack demo: ")
	must(t, s.ForgetChanges(t.Context(), "demo"))
	if len(cloud.Table.Items) > 0 {
		t.Errorf("left: %v", cloud.Table.Items)
	}
}

// The history is read unless the parameter is new, and may be behind.
func TestReadingTheParameterChange(t *testing.T) {
	_, cloud := store()
	const name = "/sawhorse/racks/demo/change"
	var c Changes
	read := func() (versions int, history, more bool) {
		t.Helper()
		cloud.Forget()
		present, err := ReadVersion(t.Context(), cloud.SSM, name)
		if must(t, err); (present != nil) != (cloud.SSM.Values[name] != "") {
			t.Errorf("present: %v", present)
		}
		all, more, err := c.ReadChange(t.Context(), cloud.SSM, name, present, cloud.Now())
		must(t, err)
		before := len(c.List)
		c.Take(all, 10)
		history = slices.ContainsFunc(cloud.Made(), func(call string) bool { return strings.HasPrefix(call, "SSM.GetParameterHistory") })
		return len(c.List) - before, history, more
	}
	write := func() {
		cloud.Pass(time.Second)
		cloud.SSM.Write(name, `{}`)
	}
	remove := func() {
		_, err := cloud.SSM.DeleteParameter(t.Context(), &ssm.DeleteParameterInput{Name: new(name)})
		must(t, err)
	}
	lags := func(n int) func() { return func() { cloud.SSM.HistoryLacks = n } }
	for i, step := range []struct {
		do            func()
		taken         int
		history, more bool
	}{
		{do: func() {}},
		{do: write, taken: 1},
		{do: func() {}},
		{do: write, taken: 1, history: true},
		{do: func() { write(); write() }, taken: 2, history: true},
		{do: func() { write(); write(); write(); lags(2)() }, taken: 1, history: true, more: true},
		{do: lags(1), taken: 2, history: true},
		{do: func() { write(); write(); lags(2)(); cloud.Pass(time.Minute) }, taken: 1, history: true}, // as long as nothing is behind
		{do: func() { lags(0)(); remove() }},
		{do: write, taken: 1},
		{do: func() { remove(); write(); write() }, taken: 2, history: true},
	} {
		step.do()
		if taken, history, more := read(); taken != step.taken || history != step.history || more != step.more {
			t.Errorf("%d: %d taken, history %v, more %v; want %d, %v, %v", i, taken, history, more, step.taken, step.history, step.more)
		}
	}
}
