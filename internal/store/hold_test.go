package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const holdParameter = "/sawhorse/hold"

var holdPaths = ownership.Paths{Prefix: "/sawhorse"}

// readHold reads a hold of this text; "" means that there is none.
func readHold(t *testing.T, cloud *awsfake.Cloud, text string) Holding {
	t.Helper()
	if delete(cloud.SSM.Values, holdParameter); text != "" {
		cloud.SSM.Values[holdParameter] = text
	}
	h, err := ReadHold(t.Context(), cloud.SSM, holdPaths)
	must(t, err)
	return h
}

func TestWhomAHoldHolds(t *testing.T) {
	cloud := awsfake.New()
	for text, want := range map[string]string{
		"":                                      "",
		`{"racks": ["*"]}`:                      "canary demo other",
		`{"racks": ["*"], "except":["canary"]}`: "demo other",
		"\n" + ` {"racks": ["demo", "none"], "reason": "an incident"} `: "demo",
		`{"racks": ["demo"], "except": ["demo"]}`:                       "",
		`{"racks": ["*", "demo"], "except": [], "reason": ""}`:          "canary demo other",
	} {
		h := readHold(t, cloud, text)
		var held []string
		for _, rack := range []string{"canary", "demo", "other"} {
			if h.Of(rack) {
				held = append(held, rack)
			}
		}
		if got := strings.Join(held, " "); got != want || h.Wrong != "" {
			t.Errorf("%s holds %q, want %q; wrong: %s", text, got, want, h.Wrong)
		}
	}
}

// What is not understood holds all racks, also one that it seems to leave out, and the warning says what to write.
func TestAHoldThatIsNotUnderstood(t *testing.T) {
	cloud := awsfake.New()
	for text, why := range map[string]string{
		"no":                                  "it is neither JSON nor padded base64",
		`["*"]`:                               "it is no JSON object",
		`{"racks": ["a"]`:                     "it is no JSON: it ends too early",
		`{"racks": ["a"]} x`:                  "something behind its end",
		`{"racks": ["a"]}{}`:                  "something behind its end",
		`{"racks": ["a"], "racks": ["b"]}`:    `racks is there twice`,
		`{"rack": ["a"]}`:                     `"rack" is no field of it; did you mean racks?`,
		`{"Racks": ["a"]}`:                    `"Racks" is no field of it`,
		`{"racks": "a"}`:                      "racks is no array of names",
		`{"racks": null}`:                     "racks is no array of names",
		`{"racks": [1]}`:                      "racks is no array of names",
		`{}`:                                  "racks names no rack",
		`{"racks": []}`:                       "racks names no rack",
		`{"racks": ["Demo"]}`:                 `racks has "Demo", which is no name of a rack`,
		`{"racks": ["de*"]}`:                  `racks has "de*", which is no name of a rack`,
		`{"racks": ["*"], "except": ["*"]}`:   `except has "*", which is no name of a rack`,
		`{"racks": ["a"], "reason": 1}`:       "reason is no text",
		`{"racks": ["a"], "except": "other"}`: "except is no array of names",
		`{"racks": 1, "reason": 1, "x": 1}`:   "racks is no array of names", // of several mistakes the same one each time
	} {
		h := readHold(t, cloud, text)
		if !strings.Contains(h.Wrong, why) || !strings.Contains(h.Wrong, `write for example {"racks": ["*"]`) || !h.Of("demo") {
			t.Errorf("%s: %q, want %q", text, h.Wrong, why)
		}
		if advice := h.Advice(holdPaths, "demo", false); len(advice) != 1 || advice[0].Parameter != holdParameter ||
			!strings.HasPrefix(advice[0].Message, "all racks are held, because its value") {
			t.Errorf("%s: %v", text, advice)
		}
	}
	cloud.SSM.Secure[holdParameter] = true
	if h := readHold(t, cloud, `{"racks": ["a"]}`); !strings.Contains(h.Wrong, "SecureString") || !h.Of("demo") {
		t.Errorf("%+v", h)
	}
}

// A hold that may not be read holds all racks. Another failure is an error, so that the caller tries again.
func TestAHoldThatCannotBeRead(t *testing.T) {
	cloud := awsfake.New()
	cloud.FailAt(1, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "request 1"})
	h, err := ReadHold(t.Context(), cloud.SSM, holdPaths)
	if err != nil || !h.Of("demo") || !strings.Contains(h.Wrong, "AccessDeniedException") || strings.Contains(h.Wrong, "request 1") {
		t.Errorf("%+v, %v", h, err)
	}
	cloud.FailAt(1, awsfake.Throttling)
	_, err = ReadHold(t.Context(), cloud.SSM, holdPaths)
	keepsCause(t, err, "parameter /sawhorse/hold: read: ")
}

func TestAdviceOfAHold(t *testing.T) {
	h := Holding{Hold: Hold{Racks: []string{"demo"}, Reason: strings.Repeat("long ", 100)}}
	if advice := h.Advice(holdPaths, "other", true); len(advice) > 0 {
		t.Errorf("of a rack that is not held: %v", advice)
	}
	on, off := h.Advice(holdPaths, "demo", false)[0].Message, h.Advice(holdPaths, "demo", true)[0].Message
	if !strings.HasPrefix(on, "the rack is held (long long") || len(on) > 450 || strings.Contains(on, "turn Karpenter off") ||
		!strings.HasSuffix(off, "do not turn Karpenter off before that") {
		t.Errorf("%s\n%s", on, off)
	}
}

// A hold is as new as its write also where that deleted it.
func TestTheHoldHasAWrite(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		modified  time.Time
		operation string
		want      bool
	}{
		{at.Add(300 * time.Millisecond), "Update", true},
		{at.Add(-time.Second), "Update", false},
		{time.Time{}, "Create", false},
		{time.Time{}, "Delete", true},
		{at.Add(-time.Second), "Delete", false},
	} {
		if got := (Holding{Modified: c.modified}).Has(Written{Operation: c.operation, At: at, Name: WrittenHold}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A running pass is told of the hold, with the write that its next iteration must have read. A rack without a pass gets no
// request, because no pass would serve it.
func TestInterrupt(t *testing.T) {
	s, cloud := store()
	wrote := Written{Operation: "Update", At: clock, Name: WrittenHold}
	must(t, s.Interrupt(t.Context(), "demo", "id", wrote))
	if len(cloud.Table.Items) > 0 {
		t.Errorf("without a pass: %v", cloud.Table.Items)
	}
	lease := key("demo", "lease")
	lease["owner"], lease["requested"], lease["expires"] = text("me"), number(7), number(clock.Add(time.Minute).Unix())
	cloud.Table.Items["rack#demo lease"] = lease
	must(t, s.Interrupt(t.Context(), "demo", "id", wrote))
	got, err := s.Renew(t.Context(), "demo", "me", clock)
	if err != nil || got.Requested != 8 || got.HeldAt != 8 || got.Held != "id" || !slices.Equal(got.Writes, []Written{wrote}) {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, s.Interrupt(t.Context(), "demo", "later", Written{}))
	if got, err = s.Renew(t.Context(), "demo", "me", clock); err != nil || got.HeldAt != 9 || got.Held != "later" || len(got.Writes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	delete(cloud.Table.Items["rack#demo lease"], "owner")
	must(t, s.Interrupt(t.Context(), "demo", "id", wrote))
	if n := cloud.Table.Items["rack#demo lease"]["requested"].(*types.AttributeValueMemberN).Value; n != "9" {
		t.Errorf("after the pass: %s requests", n)
	}
}
