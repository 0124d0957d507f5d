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

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/events"
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
}

const folder = "/sawhorse/racks/demo/params/"

func begin(t *testing.T, written map[string]string) *scene {
	cloud := awsfake.New()
	for name, value := range written {
		cloud.SSM.Values[folder+name] = value
	}
	store := &store.Store{DB: cloud.Table, Name: "sawhorse"}
	return &scene{T: t, cloud: cloud, step: &Step{SSM: cloud.SSM, Store: store, Paths: ownership.Paths{Prefix: "/sawhorse"}, Now: cloud.Now}}
}

// change adds a change request in a state. Later ids are later changes.
func (s *scene) change(state store.ChangeState, id string, set map[string]string, unset ...string) *scene {
	s.Helper()
	payload, err := json.Marshal(events.ParametersChangeRequested{Rack: "demo", Set: set, Unset: unset})
	if err != nil {
		s.Fatal(err)
	}
	item := awsfake.Item{}
	for name, value := range map[string]string{
		"pk": "change#demo", "sk": "change#" + id, "state": string(state), "at": id, "payload": string(payload),
	} {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	s.cloud.Table.Items["change#demo change#"+id] = item
	return s
}

func (s *scene) run() (outcome.Progress, error) {
	return s.step.Run(s.Context(), &plan.Plan{Rack: "demo"}, "")
}

// call runs the step, which must not fail.
func (s *scene) call() outcome.Progress {
	s.Helper()
	s.cloud.Forget()
	progress, err := s.run()
	if err != nil {
		s.Fatal(err)
	}
	return progress
}

// wrote checks that the last call wrote and reported these parameters, in this order.
func (s *scene) wrote(progress outcome.Progress, want ...string) {
	s.Helper()
	var put, told []string
	for _, call := range s.cloud.Made() {
		if name, ok := strings.CutPrefix(call, "SSM.PutParameter "+folder); ok {
			put = append(put, name)
		}
	}
	for _, c := range progress.Changes {
		told = append(told, strings.TrimPrefix(c.Subject, "parameter ")+" "+c.Action)
	}
	if !slices.Equal(told, want) {
		s.Errorf("told %q, want %q", told, want)
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

func (s *scene) state(id string) string {
	return awsfake.Text(s.cloud.Table.Items["change#demo change#"+id], "state")
}

func TestWritesAtTheStoresPace(t *testing.T) {
	set := map[string]string{}
	for i := range 7 {
		set[fmt.Sprint("p", i)] = fmt.Sprint("value", i)
	}
	s := begin(t, nil).change(store.ChangeAccepted, "1", set)
	for _, want := range [][]string{
		{"p0 written", "p1 written", "p2 written"}, {"p3 written", "p4 written", "p5 written"}, {"p6 written"},
	} {
		progress := s.call()
		last := len(want) == 1
		if wait := progress.Wait; (wait == 0) != last || wait != 0 && wait != time.Second {
			t.Errorf("after %v: wait %v", want, wait)
		}
		if text := fmt.Sprint(progress); strings.Contains(text, "value") {
			t.Errorf("a value would be in the log: %s", text)
		}
		s.wrote(progress, want...)
		if finished := s.state("1") == "finished"; finished != last {
			t.Errorf("after %v: the change is %s", want, s.state("1"))
		}
	}
	s.holds(set)
	if progress := s.call(); progress.Wait > 0 || len(s.cloud.Writes()) > 0 {
		t.Errorf("a second run: %+v, %v", progress, s.cloud.Writes())
	}
}

func TestWritesOnlyWhatIsMissing(t *testing.T) {
	s := begin(t, map[string]string{"same": "1", "other": "1", "mine": "1", "reset": "1", "default": "unset"})
	s.change(store.ChangeAccepted, "1", map[string]string{"same": "1", "other": "2", "new": "3", "empty": ""}, "reset", "default", "absent")
	progress := s.call()
	s.wrote(progress, "new written", "other written", "reset unset")
	s.holds(map[string]string{"same": "1", "other": "2", "mine": "1", "new": "3", "reset": "unset", "default": "unset"})
	if s.state("1") != "finished" || progress.Wait > 0 {
		t.Errorf("%s, %+v", s.state("1"), progress)
	}

	s = begin(t, map[string]string{"same": "1"}).change(store.ChangeAccepted, "1",
		map[string]string{"same": "1"}).change(store.ChangeAccepted, "2", nil)
	s.wrote(s.call())
	if s.state("1") != "finished" || s.state("2") != "finished" {
		t.Errorf("changes that change nothing are %s and %s", s.state("1"), s.state("2"))
	}
}

// Like Parameter Store, the fake refuses another type, and a large value in the standard tier.
func TestTypesAndTiers(t *testing.T) {
	large := strings.Repeat("x", 5000)
	s := begin(t, map[string]string{"list": "a,b", "secret": "sealed", "text": "1"})
	s.cloud.SSM.Lists[folder+"list"], s.cloud.SSM.Secure[folder+"secret"] = true, true
	s.change(store.ChangeAccepted, "1", map[string]string{"list": "c,d", "secret": "plain", "text": large, "new": large})
	s.wrote(s.call(), "list written", "new written", "text written")
	s.holds(map[string]string{"list": "c,d", "secret": "sealed", "text": large, "new": large})
	if s.state("1") != "finished" || s.cloud.SSM.Lists[folder+"new"] {
		t.Errorf("%s, lists %v", s.state("1"), s.cloud.SSM.Lists)
	}
}

func TestChangesFollowEachOther(t *testing.T) {
	s := begin(t, map[string]string{"a": "0"})
	s.change(store.ChangeAccepted, "2", map[string]string{"a": "2", "b": "2"}).change(store.ChangeAccepted, "1",
		map[string]string{"a": "1", "c": "1"})
	s.change(store.ChangeRequested, "3", map[string]string{"a": "3"})
	progress := s.call()
	s.wrote(progress, "a written", "c written", "a written")
	if s.state("1") != "finished" || s.state("2") != "accepted" || progress.Wait != time.Second {
		t.Errorf("%s, %s, %+v", s.state("1"), s.state("2"), progress)
	}
	s.wrote(s.call(), "b written")
	s.holds(map[string]string{"a": "2", "b": "2", "c": "1"})
	if s.state("2") != "finished" || s.state("3") != "requested" {
		t.Errorf("%s, %s", s.state("2"), s.state("3"))
	}
}

// The second change undoes the first one in the same call.
func TestAChangeThatTakesAnotherBack(t *testing.T) {
	s := begin(t, map[string]string{"a": "0"})
	s.change(store.ChangeAccepted, "1", map[string]string{"a": "1", "new": "1"}).change(store.ChangeAccepted, "2",
		map[string]string{"a": "0"})
	s.wrote(s.call(), "a written", "new written", "a written")
	s.holds(map[string]string{"a": "0", "new": "1"})
}

// A user's write to a parameter that the change has already written is later, so it wins.
func TestALaterWriteIsNotWrittenOver(t *testing.T) {
	s := begin(t, nil).change(store.ChangeAccepted, "1", map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"})
	s.call()
	s.cloud.SSM.Values[folder+"a"] = "a user's"
	s.wrote(s.call(), "d written")
	s.holds(map[string]string{"a": "a user's", "b": "1", "c": "1", "d": "1"})
}

// A pass without a change to write makes one read.
func TestNothingToWrite(t *testing.T) {
	s := begin(t, nil).change(store.ChangeFinished, "1", map[string]string{"a": "1"}).change(store.ChangeRequested, "2",
		map[string]string{"a": "2"})
	s.call()
	if got := s.cloud.Made(); !slices.Equal(got, []string{"DynamoDB.Query change#demo change#"}) {
		t.Errorf("calls %v", got)
	}
}

func TestInterrupted(t *testing.T) {
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		s := begin(t, map[string]string{"a": "0", "b": "0"})
		s.change(store.ChangeAccepted, "1", map[string]string{"a": "1", "c": "1", "d": "1", "e": "1"}, "b")
		s.change(store.ChangeAccepted, "2", map[string]string{"a": "2"})
		return s.cloud, func() (bool, error) {
			progress, err := s.run()
			return progress.Wait == 0, err
		}
	}, func(cloud *awsfake.Cloud) any {
		delete(cloud.Table.Items, "rack#demo written#change") // has times
		return []any{cloud.SSM.Values, cloud.Table.Items}
	})
}

// refuses makes writes of one parameter fail, whose pattern is valid in Java and not in Go.
func (s *scene) refuses(name string, err error) {
	s.cloud.SSM.Patterns[folder+name] = "(?=2)"
	s.cloud.Before = func(call string) error {
		if call == "SSM.PutParameter "+folder+name {
			return err
		}
		return nil
	}
}

// rejected runs the step until it rejects the change, and returns the message.
func (s *scene) rejected(id, parameter string) string {
	s.Helper()
	_, err := s.run()
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) || rejected.Change != id || len(rejected.Problems) != 1 || rejected.Problems[0].Parameter != parameter {
		s.Fatalf("%v (%+v)", err, rejected)
	}
	if strings.Contains(err.Error(), "private") {
		s.Errorf("a value would be in the log: %v", err)
	}
	if s.state(id) != "refused" {
		s.Errorf("the change is %s, and would be written again", s.state(id))
	}
	return rejected.Problems[0].Message
}

// Patterns are checked before the first write, so a bad change leaves every parameter as it was.
func TestABrokenPatternEndsTheChangeBeforeItsFirstWrite(t *testing.T) {
	written := map[string]string{"a": "0", "b": "0", "same": "private"}
	s := begin(t, written)
	s.cloud.SSM.Patterns[folder+"b"] = "^[0-9]+$"
	s.cloud.SSM.Patterns[folder+"same"] = "^never$" // older than the pattern: not written, so not refused
	s.change(store.ChangeAccepted, "1", map[string]string{"a": "1", "b": "private", "same": "private"}).change(store.ChangeAccepted, "2",
		map[string]string{"a": "2"})
	if got := s.rejected("1", "b"); !strings.Contains(got, "^[0-9]+$") || !strings.Contains(got, "change request 1") ||
		!strings.Contains(got, "nothing of that was written") {
		t.Errorf("%s", got)
	}
	s.holds(written)
	// The plan was made for the change, so another iteration is requested for the remaining work.
	if got := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "requested"); got != "1" {
		t.Errorf("%s requests", got)
	}
	s.wrote(s.call(), "a written")
	s.holds(map[string]string{"a": "2", "b": "0", "same": "private"})
}

func TestWhatTheStoreNeverTakesEndsTheChange(t *testing.T) {
	for _, err := range []error{
		&ssmtypes.ParameterPatternMismatchException{Message: new("private")},
		&smithy.GenericAPIError{Code: "ValidationException", Message: "private"},
	} {
		s := begin(t, map[string]string{"c": "2"}).change(store.ChangeAccepted, "1",
			map[string]string{"a": "1", "b": "1", "c": "private", "d": "1"})
		s.refuses("c", err)
		if got := s.rejected("1", "c"); !strings.Contains(got, "made to a, b") {
			t.Errorf("%s", got)
		}
		if progress := s.call(); progress.Wait > 0 || len(s.cloud.Writes()) > 0 {
			t.Errorf("it goes on: %+v, %v", progress, s.cloud.Writes())
		}
		s.holds(map[string]string{"a": "1", "b": "1", "c": "2"})
	}
	s := begin(t, map[string]string{"a": "2"}).change(store.ChangeAccepted, "1", map[string]string{"a": "private"})
	s.refuses("a", &smithy.GenericAPIError{Code: "AccessDeniedException"})
	if _, err := s.run(); err == nil || errors.As(err, new(*outcome.Rejected)) || s.state("1") != "accepted" {
		t.Errorf("a right that is missing: %v, and the change is %s", err, s.state("1"))
	}
}

// If any call on the way to a rejection fails, the next run rejects.
func TestARefusalThatIsInterrupted(t *testing.T) {
	for n := 1; n <= 5; n++ { // read changes, tree and patterns, request an iteration, write the state
		s := begin(t, map[string]string{"a": "0", "b": "0"}).change(store.ChangeAccepted, "1", map[string]string{"a": "1", "b": "private"})
		s.cloud.SSM.Patterns[folder+"b"] = "^[0-9]+$"
		s.cloud.FailAt(n, awsfake.Throttling)
		if _, err := s.run(); !errors.Is(err, awsfake.Throttling) {
			t.Errorf("call %d failed: %v", n, err)
		}
		s.rejected("1", "b")
		s.holds(map[string]string{"a": "0", "b": "0"})
	}
}

// The step validate does not accept such a change, but an older version might have.
func TestAnAcceptedChangeThatIsMalformed(t *testing.T) {
	s := begin(t, map[string]string{"a": "0"}).change(store.ChangeAccepted, "1", map[string]string{"a": "1"}, "a")
	if got := s.rejected("1", "rack"); !strings.Contains(got, "both in set and in unset") {
		t.Errorf("%s", got)
	}
	s.holds(map[string]string{"a": "0"})
}
