package store

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// request stores a change like the state machine does.
func request(cloud *awsfake.Cloud, rack, id, at, payload string) awsfake.Item {
	values := changeKey(rack, id)
	values["state"], values["at"], values["payload"], values["ttl"] = text("requested"), text(at), text(payload), number(1)
	cloud.Table.Items["change#"+rack+" change#"+id] = values
	return values
}

const wish = `{"rack":"demo","set":{"karpenter_cpu_limit":"200","node_disk":"30"},"unset":["karpenter_arch"]}`

func TestChangesComeInTheOrderOfTheirArrival(t *testing.T) {
	s, cloud := store()
	if got, err := s.Changes(t.Context(), "demo"); err != nil || len(got) > 0 {
		t.Fatalf("a new rack: %v, %v", got, err)
	}
	set := func(value string) string { return `{"rack":"demo","set":{"a":"` + value + `"}}` }
	request(cloud, "demo", "z", "2026-01-02T03:04:05Z 2026-01-02T03:04:06.100Z", set("1"))
	request(cloud, "demo", "m", "2026-01-02T03:04:05Z 2026-01-02T03:04:06.200Z", set("2"))
	request(cloud, "demo", "b", "2026-01-02T03:04:05Z 2026-01-02T03:04:06.200Z", set("3"))
	request(cloud, "demo", "a", "2026-01-02T03:04:07Z 2026-01-02T03:04:06.000Z", set("4"))["state"] = text("accepted")
	for _, over := range []string{"refused", "finished"} {
		request(cloud, "demo", over, "2026-01-01T00:00:00Z", set("5"))["state"] = text(over)
	}
	request(cloud, "other", "x", "2026-01-01T00:00:00Z", set("6"))
	got, err := s.Changes(t.Context(), "demo")
	must(t, err)
	var order []string
	for _, c := range got {
		order = append(order, c.ID+" "+string(c.State)+" "+c.Set["a"])
	}
	if want := []string{"z requested 1", "b requested 3", "m requested 2", "a accepted 4"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	cloud.FailAt(2, awsfake.Throttling) // the second page
	_, err = s.Changes(t.Context(), "demo")
	keepsCause(t, err, "rack demo: ")
}

func TestWhatAChangeAsksFor(t *testing.T) {
	long := strings.Repeat("v", MaxValue)
	for _, c := range []struct {
		what, payload string
		set           map[string]string
		unset         []string
		malformed     string // the expected prefix
	}{
		{what: "both", payload: wish, set: map[string]string{"karpenter_cpu_limit": "200", "node_disk": "30"},
			unset: []string{"karpenter_arch"}},
		{what: "nothing", payload: `{"rack":"demo"}`},
		{what: "empty ones", payload: `{"rack":"demo","set":{},"unset":[]}`},
		// Parameter Store cannot store an empty text.
		{what: "two words for unset", payload: `{"set":{"b":"","a":"unset","c":"1"},"unset":["z"]}`, set: map[string]string{"c": "1"},
			unset: []string{"a", "b", "z"}},
		{what: "a value of white space and letters", payload: `{"set":{"a":" ü\n\u0000"}}`, set: map[string]string{"a": " ü\n\x00"}},
		{what: "the longest value", payload: `{"set":{"a":"` + long + `"}}`, set: map[string]string{"a": long}},

		{what: "a value that is too long", payload: `{"set":{"a":"` + long + `v"}}`, malformed: `sets "a" to 8193 bytes`},
		{what: "too large for the state machine", payload: "", malformed: "is larger than"},
		{what: "no JSON", payload: `{"set":`, malformed: "has a detail that is no JSON object"},
		{what: "null", payload: `null`, malformed: "has a detail that is no JSON object"},
		{what: "a list", payload: `[]`, malformed: "has a detail that is no JSON object"},
		{what: "an unknown field", payload: `{"rack":"demo","dryRun":true}`, malformed: `has the unknown field "dryRun"`},
		{what: "a field in other letters", payload: `{"Set":{"a":"1"}}`,
			malformed: `has the unknown field "Set": it may have rack, set and unset; did you mean set?`},
		{what: "a long field", payload: `{"` + long + `":1}`, malformed: `has the unknown field "` + long[:60] + `"`},
		{what: "set as a list", payload: `{"set":["a"]}`, malformed: "has a set that is no object of texts"},
		{what: "set as null", payload: `{"set":null}`, malformed: "has a set that is no object of texts"},
		{what: "a number", payload: `{"set":{"b":1,"a":"1"}}`, malformed: `sets "b" to something that is no text`},
		{what: "null as a value", payload: `{"set":{"a":null}}`, malformed: `sets "a" to something that is no text`},
		{what: "an object as a value", payload: `{"set":{"a":{"secret":1}}}`, malformed: `sets "a" to something that is no text`},
		{what: "unset as a text", payload: `{"unset":"a"}`, malformed: "has an unset that is no list of names"},
		{what: "unset as null", payload: `{"unset":null}`, malformed: "has an unset that is no list of names"},
		{what: "null in unset", payload: `{"unset":["a",null]}`, malformed: "has an unset that is no list of names"},
		{what: "a name twice", payload: `{"unset":["a","a"]}`, malformed: `unsets "a" twice`},
		{what: "a name in both", payload: `{"set":{"a":"1"},"unset":["a"]}`, malformed: `has "a" both in set and in unset`},
	} {
		t.Run(c.what, func(t *testing.T) {
			s, cloud := store()
			request(cloud, "demo", "1", "now", c.payload)
			got, err := s.Changes(t.Context(), "demo")
			if err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
			if !maps.Equal(got[0].Set, c.set) || !slices.Equal(got[0].Unset, c.unset) {
				t.Errorf("set %.80v, unset %v", got[0].Set, got[0].Unset)
			}
			if (got[0].Malformed == "") != (c.malformed == "") || !strings.HasPrefix(got[0].Malformed, c.malformed) ||
				strings.Contains(got[0].Malformed, "secret") {
				t.Errorf("malformed %q, want %q", got[0].Malformed, c.malformed)
			}
			problem, bad := got[0].Problem()
			if bad != (c.malformed != "") ||
				bad && (problem.Parameter != "rack" || !strings.HasPrefix(problem.Message, "the change request 1 "+c.malformed)) {
				t.Errorf("%v, %+v", bad, problem)
			}
		})
	}
}

func TestOverlay(t *testing.T) {
	tree := Tree{
		Values: map[string]string{"a": "old", "b": "old", "c": "", "d": "old", "e": "same"}, Secure: []string{"c"},
		Versions: map[string]int64{"a": 5, "b": 1, "c": 1, "d": 3, "e": 4},
	}
	before, err := json.Marshal(tree)
	must(t, err)
	changes := []ChangeRequest{
		{ID: "1", Set: map[string]string{"a": "1", "e": "same", "new": "1"}, Unset: []string{"b"}},
		{ID: "2", Set: map[string]string{"a": "2", "b": "2", "c": "2"}, Unset: []string{"gone"}},
		{ID: "3", Malformed: "is wrong"},
	}
	got := Overlay(tree, changes)
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
	if got := Overlay(Tree{}, changes[:1]); got.Values["new"] != "1" {
		t.Errorf("over nothing: %+v", got)
	}
}

// A write that is done is not applied again: if a user writes the parameter again while the rest is being written, the
// user's value counts.
func TestOverlayLeavesWhatIsWritten(t *testing.T) {
	tree := Tree{Values: map[string]string{"a": "a user's later write", "b": "old", "c": "old"}}
	change := ChangeRequest{Set: map[string]string{"c": "3", "a": "1"}, Unset: []string{"b"}}
	for written, want := range []map[string]string{
		{"a": "1", "b": "unset", "c": "3"},
		{"a": "a user's later write", "b": "unset", "c": "3"},
		{"a": "a user's later write", "b": "old", "c": "3"},
		tree.Values,
		tree.Values, // more than there are writes
	} {
		change.Written = written
		if got := Overlay(tree, []ChangeRequest{change}); !maps.Equal(got.Values, want) {
			t.Errorf("%d written: %v, want %v", written, got.Values, want)
		}
	}
}

func TestTheStatesOfAChange(t *testing.T) {
	type move = func(*Store) error
	accept := func(s *Store) error { return s.Accept(t.Context(), "demo", "1") }
	refuse := func(s *Store) error { return s.Refuse(t.Context(), "demo", "1") }
	finish := func(s *Store) error { return s.Finish(t.Context(), "demo", "1") }
	note := func(s *Store) error { return s.NoteWritten(t.Context(), "demo", "1", 2) }
	for _, c := range []struct {
		from, what string
		move       move
		to         string
	}{
		{"requested", "accept", accept, "accepted"}, {"accepted", "accept", accept, "accepted"},
		{"requested", "refuse", refuse, "refused"}, {"accepted", "refuse", refuse, "refused"}, {"refused", "refuse", refuse, "refused"},
		{"accepted", "finish", finish, "finished"}, {"finished", "finish", finish, "finished"},
		{"accepted", "note", note, "accepted"},
		// A change that has ended stays as it is, and a change that was not accepted cannot be finished.
		{"refused", "accept", accept, ""}, {"finished", "accept", accept, ""}, {"finished", "refuse", refuse, ""},
		{"refused", "finish", finish, ""}, {"requested", "finish", finish, ""},
		{"requested", "note", note, ""}, {"finished", "note", note, ""},
	} {
		s, cloud := store()
		request(cloud, "demo", "1", "now", wish)["state"] = text(c.from)
		err := c.move(s)
		item, to := cloud.Table.Items["change#demo change#1"], c.to
		if to == "" {
			to = c.from
		}
		if (err == nil) != (c.to != "") || awsfake.Text(item, "state") != to {
			t.Errorf("%s a %s change: %v, and it is %s", c.what, c.from, err, awsfake.Text(item, "state"))
		}
		if over := c.to == "refused" || c.to == "finished"; over == (item["payload"] != nil) {
			t.Errorf("%s a %s change: payload %q", c.what, c.from, awsfake.Text(item, "payload"))
		}
		// The item is how a repeated event is recognized.
		if awsfake.Text(item, "ttl") != "1" || awsfake.Text(item, "at") != "now" {
			t.Errorf("%s a %s change: %v", c.what, c.from, item)
		}
	}
	for what, m := range map[string]move{"accept": accept, "refuse": refuse, "finish": finish, "note": note} {
		s, cloud := store()
		if err := m(s); err == nil || len(cloud.Table.Items) > 0 {
			t.Errorf("%s no change: %v, and %v was made", what, err, cloud.Table.Items)
		}
	}
}

// A pass may be stopped at any call. The next one does the rest.
func TestAChangeThatIsInterrupted(t *testing.T) {
	life := func(s *Store) error {
		changes, err := s.Changes(t.Context(), "demo")
		if err != nil || len(changes) == 0 {
			return err
		}
		if err := s.Accept(t.Context(), "demo", "1"); err != nil {
			return err
		}
		for n := changes[0].Written; n < len(changes[0].Writes()); n++ {
			if err := s.NoteWritten(t.Context(), "demo", "1", n+1); err != nil {
				return err
			}
		}
		return s.Finish(t.Context(), "demo", "1")
	}
	for n := 1; n <= 6; n++ {
		s, cloud := store()
		request(cloud, "demo", "1", "now", wish)
		cloud.FailAt(n, awsfake.Throttling)
		if err := life(s); !errors.Is(err, awsfake.Throttling) || !strings.HasPrefix(err.Error(), "rack demo: ") {
			t.Errorf("call %d failed: %v", n, err)
		}
		if err := life(s); err != nil {
			t.Errorf("after call %d failed: %v", n, err)
		}
		item := cloud.Table.Items["change#demo change#1"]
		if got := awsfake.Text(item, "state"); got != "finished" {
			t.Errorf("after call %d failed: %s", n, got)
		}
		if changes, err := s.Changes(t.Context(), "demo"); err != nil || len(changes) > 0 {
			t.Errorf("after call %d failed: %v, %v", n, changes, err)
		}
	}
}
