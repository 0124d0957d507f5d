package resource_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

var errTheirs = errors.New("somebody else's")

// wanted is a resource that was read with a size and tags, and is to have the size 2 and the tag team=a.
func (s *scene) wanted(size string, tags map[string]string, theirs error) resource.Wanted {
	do := func(made string) func(context.Context) error {
		return func(context.Context) error { s.made = append(s.made, made); return nil }
	}
	return resource.Wanted{Unowned: theirs, Create: do("create"), Parts: []resource.Write{
		{Aspect: "/size", Read: size, Value: "2", Change: outcome.Change{Subject: "size of the thing", Action: "set"}, Do: do("size")},
		resource.Tags(tags, map[string]string{"team": "a"}, do("tags")),
	}}
}

// did ends a call of a step, and checks what it reported and wrote.
func (s *scene) did(w *resource.Writer, err, want error, changes int, made ...string) {
	s.Helper()
	progress, err := w.End(s.Context(), err)
	if !errors.Is(err, want) || len(progress.Changes) != changes {
		s.Errorf("%v, %+v", err, progress.Changes)
	}
	s.wrote(made...)
}

var found = resource.Live{Name: "thing", Found: true, Owned: true}

func TestEnsure(t *testing.T) {
	s := &scene{T: t, cloud: awsfake.New()}
	tags := map[string]string{"team": "a", "theirs": "x"}
	ensure := func(live resource.Live, wanted resource.Wanted, want error, changes int, made ...string) {
		t.Helper()
		w := s.open()
		s.did(w, w.Ensure(t.Context(), live, wanted), want, changes, made...)
	}
	t.Log("created with all its parts")
	ensure(resource.Live{Name: "thing"}, s.wanted("", nil, nil), nil, 1, "create")
	ensure(found, s.wanted("2", tags, nil), nil, 0)
	t.Log("a part that differs is repaired, in order")
	w := s.open()
	err := w.Ensure(t.Context(), found, s.wanted("1", map[string]string{"team": "b"}, nil))
	s.did(w, err, nil, 2, "size", "tags")
	want := []outcome.Change{{Subject: "size of the thing", Action: "set"}, {Subject: "thing", Action: "tagged"}}
	if !slices.Equal(w.Changes, want) {
		t.Errorf("%+v", w.Changes)
	}
	t.Log("one of others is left alone, or an error")
	theirs := resource.Live{Name: "thing", Found: true}
	ensure(theirs, s.wanted("1", nil, nil), nil, 0)
	ensure(theirs, s.wanted("1", nil, errTheirs), errTheirs, 0)
	t.Log("a read from before the deletion")
	w = s.open()
	s.did(w, w.Delete(t.Context(), found, s.removal(nil)), nil, 1, "first", "delete")
	ensure(theirs, s.wanted("1", nil, errTheirs), errTheirs, 0)
	ensure(found, s.wanted("2", tags, nil), nil, 1, "create")
	ensure(found, s.wanted("2", tags, nil), nil, 0)
}

// A creation that is also the update of what is there has the value that it sets: it is made again if it may not have been.
func TestEnsureAnUpdate(t *testing.T) {
	s := &scene{T: t, cloud: awsfake.New()}
	ensure := func(found bool, read, value string, failed error) {
		t.Helper()
		put := func(context.Context) error { s.made = append(s.made, value); return failed }
		w := s.open()
		err := w.Ensure(t.Context(), resource.Live{Name: "rule", Found: found, Owned: found}, resource.Wanted{
			Create: put, Parts: []resource.Write{{Read: read, Value: value, Do: put}},
		})
		if _, err := w.End(t.Context(), err); !errors.Is(err, failed) {
			t.Fatal(err)
		}
	}
	ensure(false, "", "1", nil)
	ensure(true, "1", "1", nil)
	s.wrote("1")
	ensure(false, "", "2", errTheirs)
	s.wrote("2")
	ensure(true, "1", "1", nil)
	s.wrote("1")
	ensure(true, "1", "1", nil)
	s.wrote()
}

func (s *scene) removal(failed error) resource.Removal {
	return resource.Removal{
		Wait:  1,
		First: func(context.Context) error { s.made = append(s.made, "first"); return failed },
		Do:    func(context.Context) error { s.made = append(s.made, "delete"); return nil },
	}
}

func TestDelete(t *testing.T) {
	s := &scene{T: t, cloud: awsfake.New()}
	remove := func(live resource.Live, failed error, changes int, made ...string) {
		t.Helper()
		w := s.open()
		w.Changed("done", "something else")
		removal := s.removal(failed)
		first := removal.First
		removal.First = func(ctx context.Context) error { w.Changed("deleted", "part"); return first(ctx) }
		s.did(w, w.Delete(t.Context(), live, removal), failed, 1+changes, made...)
	}
	t.Log("nothing is there, or nothing of ours")
	remove(resource.Live{Name: "thing"}, nil, 0)
	remove(resource.Live{Name: "thing", Found: true}, nil, 0)
	t.Log("what must be gone before comes first, and is not reported")
	remove(found, errTheirs, 0, "first")
	remove(found, nil, 1, "first", "delete")
	t.Log("it is still shown")
	remove(found, nil, 0)
	t.Log("created, and not shown yet")
	w := s.open()
	s.did(w, w.Ensure(t.Context(), resource.Live{Name: "thing"}, s.wanted("", nil, nil)), nil, 1, "create")
	w = s.open()
	err := w.Delete(t.Context(), resource.Live{Name: "thing"}, s.removal(nil))
	var early *outcome.NotYet
	if !errors.As(err, &early) || early.Wait != 1 || early.Note != "AWS does not show thing, which was made less than three minutes ago" {
		t.Errorf("%v", err)
	}
	s.wrote()
	s.cloud.Pass(resource.Lag)
	remove(resource.Live{Name: "thing"}, nil, 0)
}
