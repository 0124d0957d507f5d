package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// scene holds the rack demo with its parameters and changes.
type scene struct {
	*testing.T
	cloud *awsfake.Cloud
	step  *Step
	// versions is how many changes were written.
	versions int64
}

const folder = "/sawhorse/racks/demo/params/"

func begin(t *testing.T, written map[string]string) *scene {
	cloud := awsfake.New()
	for name, value := range written {
		cloud.SSM.Write(folder+name, value)
	}
	cloud.Pass(time.Hour)
	store := &store.Store{DB: cloud.Table, Name: "sawhorse"}
	return &scene{T: t, cloud: cloud, step: &Step{SSM: cloud.SSM, Store: store, Paths: ownership.Paths{Prefix: "/sawhorse"}, Now: cloud.Now}}
}

// change takes and accepts a change, as the function validate does.
func (s *scene) change(set map[string]string, unset ...string) *scene {
	s.Helper()
	text, err := json.Marshal(map[string]any{"set": set, "unset": append([]string{}, unset...)})
	s.must(err)
	if set == nil {
		text = fmt.Appendf(nil, `{"unset":["%s"]}`, strings.Join(unset, `","`))
	}
	changes := s.changes()
	s.versions++
	changes.Take([]store.Version{{Text: string(text), Number: s.versions, Modified: s.cloud.Now().Add(time.Duration(s.versions))}}, 1)
	return s.accept(changes, len(changes.List)-1)
}

func (s *scene) accept(changes store.Changes, i int) *scene {
	s.Helper()
	tree, err := store.ReadTree(s.Context(), s.cloud.SSM, strings.TrimSuffix(folder, "/"))
	s.must(err)
	if bad := changes.List[i].Malformed; len(bad) > 0 {
		s.Fatal(bad)
	}
	changes.Accept(i, changes.Overlay(tree, i, nil, s.cloud.Now()), s.cloud.Now())
	s.must(s.step.Store.SaveChanges(s.Context(), "demo", &changes, s.cloud.Now()))
	s.cloud.Forget()
	return s
}

// onTop gives up a change of b, and accepts another one on top of it before b is put back.
func onTop(t *testing.T) *scene {
	t.Helper()
	s := begin(t, map[string]string{"b": "0", "c": "0"})
	s.cloud.SSM.Patterns[folder+"c"] = "^[0-9]$"
	s.change(map[string]string{"b": "1", "c": "x"}).change(map[string]string{"b": "2"})
	s.gaveUp(1, "c")
	return s.accept(s.changes(), 1)
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) changes() store.Changes {
	s.Helper()
	changes, err := s.step.Store.Changes(s.Context(), "demo")
	s.must(err)
	return changes
}

func (s *scene) run() (outcome.Progress, error) {
	return s.step.Run(s.Context(), &plan.Plan{Rack: "demo"}, "")
}

// call runs the step, which must not fail.
func (s *scene) call() outcome.Progress {
	s.Helper()
	s.cloud.Forget()
	progress, err := s.run()
	s.must(err)
	return progress
}

// wrote checks that the last call wrote and reported these parameters, in this order.
func (s *scene) wrote(progress outcome.Progress, want ...string) {
	s.Helper()
	var put, reported []string
	for _, call := range s.cloud.Made() {
		if name, ok := strings.CutPrefix(call, "SSM.PutParameter "+folder); ok {
			put = append(put, name)
		}
	}
	for _, c := range progress.Changes {
		reported = append(reported, strings.TrimPrefix(c.Subject, "parameter ")+" "+c.Action)
	}
	if !slices.Equal(reported, want) {
		s.Errorf("reported %q, want %q", reported, want)
	}
	for i := range want {
		want[i], _, _ = strings.Cut(want[i], " ")
	}
	if !slices.Equal(put, want) {
		s.Errorf("put %q, want %q", put, want)
	}
}

func (s *scene) holds(want map[string]string) {
	s.Helper()
	have := map[string]string{}
	for name, value := range s.cloud.SSM.Values {
		have[strings.TrimPrefix(name, folder)] = value
	}
	if !maps.Equal(have, want) {
		s.Errorf("Parameter Store has %v, want %v", have, want)
	}
}

// states returns the states of the changes.
func (s *scene) states() string {
	s.Helper()
	var all []string
	for _, c := range s.changes().List {
		all = append(all, string(c.State))
	}
	return strings.Join(all, ", ")
}

func TestWritesThreeAtATime(t *testing.T) {
	s := begin(t, nil).change(map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}, "e")
	progress := s.call()
	s.wrote(progress, "a written", "b written", "c written")
	if progress.Wait != time.Second || s.states() != "accepted" {
		t.Errorf("%+v, %s", progress, s.states())
	}
	progress = s.call()
	s.wrote(progress, "d written")
	if progress.Wait > 0 || s.states() != "ended" || s.changes().Last.Outcome != store.ChangeWritten {
		t.Errorf("%+v, %s", progress, s.states())
	}
	s.holds(map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}) // e has its default already
	if progress := s.call(); progress.Wait > 0 || len(s.cloud.Writes()) > 0 {
		t.Errorf("a second run: %+v, %v", progress, s.cloud.Writes())
	}
}

// The record has the time of each write, and of that which puts it back: a deletion from before is none of what was written.
func TestTheTimeOfAWrite(t *testing.T) {
	s := begin(t, map[string]string{"a": "0", "c": "0"})
	s.cloud.SSM.Patterns[folder+"c"] = "^[0-9]+$"
	s.change(map[string]string{"a": "1", "c": "private"})
	for what, call := range []func(){func() { s.gaveUp(1, "c") }, func() { s.call() }} {
		s.cloud.Pass(time.Minute)
		before := s.cloud.Now()
		call()
		if at := s.changes().List[0].Writes[0].At; at.Before(before) {
			t.Errorf("call %d: at %s, not before %s", what, at, before)
		}
	}
}

func TestWritesOnlyWhatIsMissing(t *testing.T) {
	s := begin(t, map[string]string{"same": "1", "other": "1", "mine": "1", "reset": "1", "default": "unset"})
	s.change(map[string]string{"same": "1", "other": "2", "new": "3", "empty": ""}, "reset", "default", "absent")
	s.wrote(s.call(), "new written", "other written", "reset unset")
	s.holds(map[string]string{"same": "1", "other": "2", "mine": "1", "new": "3", "reset": "unset", "default": "unset"})
	s = begin(t, map[string]string{"same": "1"}).change(map[string]string{"same": "1"}).change(nil)
	s.wrote(s.call())
	if s.states() != "ended, ended" {
		t.Errorf("changes that change nothing are %s", s.states())
	}
}

// Like Parameter Store, the fake refuses another type, and a large value in the standard tier.
func TestTypesAndTiers(t *testing.T) {
	large := strings.Repeat("x", 5000)
	s := begin(t, map[string]string{"list": "a,b", "text": "1"})
	s.cloud.SSM.Lists[folder+"list"] = true
	s.change(map[string]string{"list": "c,d", "text": large, "new": large})
	s.wrote(s.call(), "list written", "new written", "text written")
	if s.states() != "ended" || s.cloud.SSM.Lists[folder+"new"] {
		t.Errorf("%s, lists %v", s.states(), s.cloud.SSM.Lists)
	}
}

func TestChangesFollowEachOther(t *testing.T) {
	s := begin(t, map[string]string{"a": "0"})
	s.change(map[string]string{"a": "1", "c": "1"}).change(map[string]string{"a": "2", "b": "2"})
	progress := s.call()
	s.wrote(progress, "a written", "c written", "a written")
	if s.states() != "ended, accepted" || progress.Wait != time.Second {
		t.Errorf("%s, %+v", s.states(), progress)
	}
	s.wrote(s.call(), "b written")
	s.holds(map[string]string{"a": "2", "b": "2", "c": "1"})
}

// The second change undoes the first one in the same call, or seconds after it, while Parameter Store still shows the state before.
func TestAChangeThatTakesAnotherBack(t *testing.T) {
	s := begin(t, map[string]string{"a": "0"})
	s.change(map[string]string{"a": "1", "new": "1"}).change(map[string]string{"a": "0"})
	s.wrote(s.call(), "a written", "new written", "a written")
	s.holds(map[string]string{"a": "0", "new": "1"})

	s = begin(t, map[string]string{"a": "0"})
	s.cloud.Lag.Parameters = 40 * time.Second
	s.change(map[string]string{"a": "1", "new": "1"})
	s.wrote(s.call(), "a written", "new written")
	s.cloud.Pass(time.Second)
	s.change(map[string]string{"a": "0"}, "new")
	s.wrote(s.call(), "a written", "new unset")
	s.holds(map[string]string{"a": "0", "new": "unset"})
}

// A user's write to a parameter that the change has already written is later, so it wins.
func TestALaterWriteIsNotWrittenOver(t *testing.T) {
	s := begin(t, nil).change(map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"})
	s.call()
	s.cloud.SSM.Write(folder+"a", "a user's")
	s.wrote(s.call(), "d written")
	s.holds(map[string]string{"a": "a user's", "b": "1", "c": "1", "d": "1"})
}

// A pass without a change to write makes one read.
func TestNothingToWrite(t *testing.T) {
	s := begin(t, nil)
	s.call()
	if got := s.cloud.Made(); !slices.Equal(got, []string{"DynamoDB.GetItem change#demo changes"}) {
		t.Errorf("calls %v", got)
	}
}

// Stopped at any call, the step comes to the same end.
func TestInterrupted(t *testing.T) {
	want := map[string]string{"a": "2", "b": "unset", "c": "1", "d": "1", "e": "1"}
	for n := 1; ; n++ {
		s := begin(t, map[string]string{"a": "0", "b": "0"})
		s.change(map[string]string{"a": "1", "c": "1", "d": "1", "e": "1"}, "b").change(map[string]string{"a": "2"})
		stopped := errors.New("stopped")
		s.cloud.FailAt(n, stopped)
		for wait := time.Second; wait > 0; {
			progress, err := s.run()
			if wait = progress.Wait; err != nil {
				wait = time.Second
				if !errors.Is(err, stopped) {
					t.Fatalf("call %d: %v", n, err)
				}
			}
		}
		failed := s.cloud.Failed()
		s.cloud.Forget()
		s.holds(want)
		if s.states() != "ended, ended" {
			t.Errorf("call %d: %s", n, s.states())
		}
		if !failed {
			return
		}
	}
}

// gaveUp runs the step until it gives a change up, and returns the message.
func (s *scene) gaveUp(version int64, parameter string) string {
	s.Helper()
	var rejected *outcome.Rejected
	var err error
	for range 2 { // the answer may be lost
		_, err = s.run()
		if !errors.As(err, &rejected) || rejected.Change != version || len(rejected.Problems) != 1 ||
			rejected.Problems[0].Parameter != parameter {
			s.Fatalf("%v (%+v)", err, rejected)
		}
	}
	changes := s.changes()
	for i := range changes.List { // as the function validate does
		changes.List[i].Ends = nil
	}
	s.must(s.step.Store.SaveChanges(s.Context(), "demo", &changes, s.cloud.Now()))
	if strings.Contains(err.Error(), "private") {
		s.Errorf("a value would be in the log: %v", err)
	}
	// The plan was made for the change, so another iteration is requested.
	if got := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "requested"); got == "" {
		s.Errorf("%s requests", got)
	}
	if last := s.changes().Last; last.Version == version && (last.Outcome != store.ChangeIsGivenUp || len(last.Problems) != 1) {
		s.Errorf("%+v", last)
	}
	return rejected.Problems[0].Message
}

// What Parameter Store will never take ends the change at once. What was written is put back as it was.
func TestWhatTheStoreNeverTakesEndsTheChange(t *testing.T) {
	s := begin(t, map[string]string{"a": "0", "c": "0"})
	s.cloud.SSM.Patterns[folder+"c"] = "^[0-9]+$"
	s.change(map[string]string{"a": "1", "b": "1", "c": "private"}).change(map[string]string{"a": "2"})
	if got := s.gaveUp(1, "c"); !strings.Contains(got, "ParameterPatternMismatchException") {
		t.Errorf("%s", got)
	}
	if s.states() != "given up, requested" {
		t.Error(s.states())
	}
	s.wrote(s.call(), "a written", "b unset")
	s.holds(map[string]string{"a": "0", "b": "unset", "c": "0"})
	if s.states() != "ended, requested" {
		t.Error(s.states())
	}
}

// A right that is missing may be there in a minute. The change is tried ten times, and other steps go on meanwhile.
func TestAWriteThatIsDenied(t *testing.T) {
	s := begin(t, map[string]string{"a": "0", "b": "0"}).change(map[string]string{"a": "1", "b": "1"})
	denied := func(call string) error {
		if call == "SSM.PutParameter "+folder+"b" {
			return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "private"}
		}
		return nil
	}
	s.cloud.Before = denied
	began := s.cloud.Now()
	progress := s.call()
	requested := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "requested")
	if progress.Wait > 0 || requested != "1" || s.changes().List[0].Failing == "" || !s.changes().Rests(began) {
		t.Errorf("the first failure: %+v, %s requests, %+v", progress, requested, s.changes())
	}
	for attempts := 2; attempts < mostAttempts; attempts++ {
		s.cloud.Pass(s.changes().List[0].Next.Sub(s.cloud.Now()))
		s.call()
		requested := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "requested")
		if c := s.changes().List[0]; c.Attempts != attempts || requested != fmt.Sprint(attempts) || !c.Next.After(s.cloud.Now()) {
			t.Fatalf("%d attempts, %s requests, next %s", c.Attempts, requested, c.Next)
		}
	}
	if wait := s.call().Wait; wait <= 0 || wait > 20*time.Second {
		t.Errorf("too early for an attempt, and it waits %s", wait)
	}
	s.cloud.Pass(s.changes().List[0].Next.Sub(s.cloud.Now()))
	if got := s.gaveUp(1, "b"); !strings.Contains(got, "AccessDeniedException") {
		t.Errorf("%s", got)
	}
	if took := s.cloud.Now().Sub(began); took < 2*time.Minute || took > longest {
		t.Errorf("given up after %s", took)
	}
	s.wrote(s.call(), "a written")
	s.holds(map[string]string{"a": "0", "b": "0"})

	t.Log("the right comes back")
	s = begin(t, map[string]string{"b": "0"}).change(map[string]string{"b": "1"})
	s.cloud.Before = denied
	s.call()
	s.cloud.Before = nil
	s.cloud.Pass(delay(1))
	s.wrote(s.call(), "b written")
	if s.states() != "ended" {
		t.Error(s.states())
	}

	t.Log("and somebody has written meanwhile what was written before, and then a change")
	s = begin(t, map[string]string{"a": "0", "b": "0"}).change(map[string]string{"a": "1", "b": "1"})
	s.cloud.Before = denied
	s.call()
	s.cloud.Before = nil
	s.cloud.SSM.Write(folder+"a", "theirs")
	s.change(map[string]string{"a": "2"})
	s.cloud.Pass(delay(1))
	for s.states() != "ended, ended" {
		s.cloud.Pass(s.call().Wait)
	}
	s.holds(map[string]string{"a": "2", "b": "1"})
}

// Throttling is no failed attempt, but has an end too.
func TestAWriteThatIsThrottled(t *testing.T) {
	s := begin(t, nil).change(map[string]string{"a": "1"})
	s.cloud.Fail("SSM.PutParameter", awsfake.Throttling)
	for began := s.cloud.Now(); s.cloud.Now().Sub(began) < longest; s.cloud.Pass(30 * time.Second) {
		s.call()
	}
	if attempts := s.changes().List[0].Attempts; attempts != 0 {
		t.Errorf("%d attempts", attempts)
	}
	s.cloud.Pass(time.Minute)
	s.gaveUp(1, "a")
}

// Where the value from before is not taken either, the change ends once all others are put back, and the status names what is left of it.
func TestWhatCannotBePutBackIsNamed(t *testing.T) {
	s := begin(t, map[string]string{"b": "0", "bb": "0", "c": "0"}).change(map[string]string{"b": "1", "bb": "1", "c": "1", "d": "1"})
	s.call()
	s.cloud.SSM.Write(folder+"d", "theirs")
	s.gaveUp(1, "d")
	s.cloud.SSM.Write(folder+"c", "theirs too")
	s.cloud.SSM.Patterns[folder+"b"] = "^[1-9]$"
	requested := func() string { return awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "requested") }
	before := requested()
	s.call()
	s.holds(map[string]string{"b": "1", "bb": "0", "c": "theirs too", "d": "theirs"})
	if requested() == before { // the plan was made for the values from before
		t.Error("no other iteration is requested")
	}
	if last := s.changes().Last; s.states() != "ended" || len(last.Problems) != 3 || last.Problems[1].Parameter != "b" ||
		last.Problems[2].Parameter != "c" || !strings.Contains(last.Problems[2].Message, "somebody else has written since") {
		t.Errorf("%s, %+v", s.states(), last)
	}
}

// A change that is accepted while an earlier one is put back is judged on a version that putting back does not always make.
func TestAChangeOnTopOfOneThatIsNotPutBack(t *testing.T) {
	s := onTop(t)
	s.cloud.SSM.Patterns[folder+"b"] = "^[1-9]$"
	s.call()
	s.holds(map[string]string{"b": "2", "c": "0"})
	if s.states() != "ended, ended" {
		t.Error(s.states())
	}
}

func TestAChangeOnTopOfOneThatSomebodyWroteOver(t *testing.T) {
	s := onTop(t)
	s.cloud.SSM.Write(folder+"b", "theirs")
	s.gaveUp(2, "b")
	s.call()
	s.holds(map[string]string{"b": "theirs", "c": "0"})
	if s.states() != "ended, ended" {
		t.Error(s.states())
	}
}

// Stopped at any call, putting back comes to the same end too, and the next change is none that somebody else has written over.
func TestPuttingBackIsInterrupted(t *testing.T) {
	for n := 1; ; n++ {
		s := onTop(t)
		stopped := errors.New("stopped")
		s.cloud.FailAt(n, stopped)
		_, err := s.run()
		failed := s.cloud.Failed()
		if failed != errors.Is(err, stopped) {
			t.Fatalf("call %d: %v", n, err)
		}
		s.call()
		s.holds(map[string]string{"b": "2", "c": "0"})
		if last := s.changes().Last; s.states() != "ended, ended" || last.Outcome != store.ChangeWritten {
			t.Errorf("call %d: %s, %+v", n, s.states(), last)
		}
		if !failed {
			return
		}
	}
}

// Their write, or their deletion, that Parameter Store does not show yet stays, although the change is put back.
func TestAWriteWhileAChangeIsPutBack(t *testing.T) {
	for what, c := range map[string]struct {
		do  func(*scene)
		end map[string]string
	}{
		"written": {func(s *scene) { s.cloud.SSM.Write(folder+"a", "theirs") }, map[string]string{"a": "theirs", "b": "0"}},
		"deleted": {func(s *scene) { s.remove("a") }, map[string]string{"b": "0"}},
		"made again": {func(s *scene) { s.remove("a"); s.cloud.SSM.Write(folder+"a", "theirs") },
			map[string]string{"a": "theirs", "b": "0"}},
	} {
		s := begin(t, map[string]string{"a": "0", "b": "0"}).change(map[string]string{"a": "1", "b": "x"})
		s.cloud.SSM.Patterns[folder+"b"] = "^[0-9]$"
		s.gaveUp(1, "b")
		s.cloud.Before = func(call string) error {
			if call == "SSM.PutParameter "+folder+"a" {
				s.cloud.Before = nil
				c.do(s)
			}
			return nil
		}
		s.call()
		s.holds(c.end)
		if s.states() != "ended" {
			t.Errorf("%s: %s", what, s.states())
		}
	}
}

// remove deletes a parameter as somebody else does.
func (s *scene) remove(name string) {
	s.Helper()
	before := s.cloud.Before
	s.cloud.Before = nil
	_, err := s.cloud.SSM.DeleteParameter(s.Context(), &ssm.DeleteParameterInput{Name: new(folder + name)})
	s.must(err)
	s.cloud.Before = before
}

// sameTime makes somebody write a parameter just before the step's next write of it arrives.
func (s *scene) sameTime(name, theirs string) {
	s.cloud.Before = func(call string) error {
		if call == "SSM.PutParameter "+folder+name {
			s.cloud.Before = nil
			s.cloud.SSM.Write(folder+name, theirs)
		}
		return nil
	}
}

// PutParameter has no condition. Its answer shows that somebody has written between the reading and the writing; their value
// comes back.
func TestAWriteAtTheSameTime(t *testing.T) {
	for _, c := range []struct{ theirs, end string }{{"theirs", "theirs"}, {"1", "1"}} {
		s := begin(t, map[string]string{"a": "0"}).change(map[string]string{"a": "1"})
		s.sameTime("a", c.theirs)
		if c.theirs == "1" { // as if an earlier call had written it
			s.call()
		} else {
			s.gaveUp(1, "a")
			if w := s.changes().List[0].Writes[0]; w.Before != "theirs" || w.Theirs.IsZero() {
				t.Errorf("recorded: %+v", w)
			}
			s.call()
		}
		s.holds(map[string]string{"a": c.end})
		if s.states() != "ended" {
			t.Errorf("%s: %s", c.theirs, s.states())
		}
	}
}

// The history may lack their write for seconds, and the call that asks for it may fail. The next call asks again.
func TestAWriteAtTheSameTimeThatTheHistoryLacks(t *testing.T) {
	for what, putsBack := range map[string]bool{"written": false, "put back": true} {
		s := begin(t, map[string]string{"a": "0", "b": "0"})
		if putsBack {
			s.change(map[string]string{"a": "1", "b": "x"})
			s.cloud.SSM.Patterns[folder+"b"] = "^[0-9]$"
			s.gaveUp(1, "b")
		} else {
			s.change(map[string]string{"a": "1"})
		}
		s.cloud.SSM.HistoryLacks = 2
		s.sameTime("a", "theirs")
		for range 2 {
			if progress := s.call(); progress.Wait != time.Second {
				t.Errorf("%s: %+v, %s", what, progress, s.states())
			}
		}
		s.cloud.SSM.HistoryLacks = 0
		if !putsBack {
			s.gaveUp(1, "a")
		}
		s.call()
		s.holds(map[string]string{"a": "theirs", "b": "0"})
		if s.states() != "ended" {
			t.Errorf("%s: %s", what, s.states())
		}
	}

	t.Log("what is not there after ten seconds does not come any more")
	s := begin(t, map[string]string{"a": "0"}).change(map[string]string{"a": "1"})
	s.cloud.SSM.HistoryLacks = 2
	s.sameTime("a", "theirs")
	s.call()
	s.cloud.Pass(10 * time.Second)
	if s.call(); s.states() != "ended" {
		t.Error(s.states())
	}

	t.Log("the parameter is deleted meanwhile: there is no history any more")
	s = begin(t, map[string]string{"a": "0"}).change(map[string]string{"a": "1"})
	s.cloud.SSM.HistoryLacks = 2
	s.sameTime("a", "theirs")
	s.call()
	s.remove("a")
	s.cloud.Pass(10 * time.Second)
	s.cloud.Fail("SSM.GetParameterHistory", &types.ParameterNotFound{})
	if s.call(); s.states() != "ended" {
		t.Error(s.states())
	}
}

func TestAWriteAtTheSameTimeAndNoHistory(t *testing.T) {
	s := begin(t, map[string]string{"a": "0"}).change(map[string]string{"a": "1"})
	failed := false
	s.cloud.Before = func(call string) error {
		switch {
		case call == "SSM.PutParameter "+folder+"a" && !failed:
			s.cloud.SSM.Write(folder+"a", "theirs")
		case strings.HasPrefix(call, "SSM.GetParameterHistory") && !failed:
			failed = true
			return awsfake.Throttling
		}
		return nil
	}
	s.call()
	s.cloud.Pass(delay(1))
	s.gaveUp(1, "a")
	s.call()
	s.holds(map[string]string{"a": "theirs"})
	if s.states() != "ended" {
		t.Error(s.states())
	}
}
