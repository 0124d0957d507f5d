package story

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

func played(t *testing.T, script func(*Script)) (*Script, string) {
	t.Helper()
	var output strings.Builder
	return Run(t.Context(), user.Environment{"PATH=/usr/bin:/bin"}, &output, false, script), output.String()
}

// A failed check says what was wanted and what was there. It ends its chapter, and no other one.
func TestAFailedCheckEndsItsChapter(t *testing.T) {
	var steps []string
	s, output := played(t, func(s *Script) {
		s.Chapter("first", func() {
			s.Check("a number", "echo 3", "3")
			s.Check("a number", "echo 4", "5")
			steps = append(steps, "after the failed check")
		})
		s.Chapter("second", func() { s.Equal("a sum", 1+1, 2) })
		s.Contains("a text", "echo text", "none")
		steps = append(steps, "after one outside of chapters")
	})
	want := []string{
		"first: a number: wanted \"5\", got \"4\" from `echo 4`",
		"a text: wanted text with \"none\", got \"text\" from `echo text`",
	}
	if !slices.Equal(s.Failures(), want) || s.Passed() != 2 || steps != nil {
		t.Errorf("%q, %d passed, %q", s.Failures(), s.Passed(), steps)
	}
	if !strings.Contains(output, "✗ a number: wanted") || !strings.Contains(output, "── second") {
		t.Error(output)
	}
}

func TestChecks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	for what, check := range map[string]struct {
		passes bool
		play   func(*Script)
	}{
		"a command that fails":          {false, func(s *Script) { s.Type("false") }},
		"output of one that fails":      {false, func(s *Script) { s.Output("echo so far; false") }},
		"a refusal":                     {true, func(s *Script) { s.Refused("echo denied; false", "denied") }},
		"a refusal for another reason":  {false, func(s *Script) { s.Refused("echo absent; false", "denied") }},
		"a command that is not refused": {false, func(s *Script) { s.Refused("echo denied", "denied") }},
		"a text that is there":          {false, func(s *Script) { s.Lacks("text", "echo some text", "text") }},
		"a text that is not there":      {true, func(s *Script) { s.Lacks("text", "echo some", "text") }},
		"a third line in time":          {true, func(s *Script) { s.Until("it", "echo >> "+file+"; wc -l < "+file, "3", time.Minute) }},
		"a text that does not come":     {false, func(s *Script) { s.Until("it", "echo 1", "0", 0) }},
		"JSON":                          {true, func(s *Script) { s.Equal("it", JSON[[]int](s, "echo [1]; echo x >&2"), "[1]") }},
		"what is no JSON":               {false, func(s *Script) { JSON[list[int]](s, "echo items") }},
		"quoting":                       {true, func(s *Script) { s.Check("it", "echo "+quoted(`it's "$HOME"`), `it's "$HOME"`) }},
		"a wait without a write":        {false, func(s *Script) { s.Served() }},
	} {
		s, output := played(t, check.play)
		if passed := len(s.Failures()) == 0; passed != check.passes {
			t.Errorf("%s: %q\n%s", what, s.Failures(), output)
		}
	}
}

// A wait that fails names what it waited for, with the command if there is one, what it wanted, and what it last saw.
func TestAFailedWaitSaysWhatItLastSaw(t *testing.T) {
	aws := httptest.NewServer(http.HandlerFunc(answer))
	defer aws.Close()
	environment := user.Environment{"AWS_ENDPOINT_URL=" + aws.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x"}
	limit := func(version int64) Write {
		return Write{Rack: "demo", Parameter: "karpenter_cpu_limit", Version: version}
	}
	for name, wait := range map[string]struct {
		play func(*Script)
		want string
	}{
		"Until": {
			func(s *Script) { s.Until("a number", `echo "4"`, "5", 0) },
			"a number: wanted \"5\", still got \"4\" from `echo \"4\"` after 0 s",
		},
		"Until, a command that fails": {
			func(s *Script) { s.Until("a number", "echo none; exit 3", "5", 0) },
			"a number: wanted \"5\", still got \"(exit status 3) none\" from `echo none; exit 3` after 0 s",
		},
		"Await": {
			func(s *Script) { s.Await("a number", func() string { return "4" }, "5", 0) },
			`a number: wanted "5", still got "4" after 0 s`,
		},
		"UntilState": {
			func(s *Script) { s.UntilState("Reconciled", 0) },
			`state: wanted "Reconciled", still got "Failed" from the status of rack demo: {"state":"Failed","failure":{"step":"queue"}} after 0 s`,
		},
		"Served, without an execution": {
			func(s *Script) { s.Served(Write{Rack: "demo", Event: "7"}) },
			"wanted an execution for event 7, still got 2 others after 0 s",
		},
		"Served, while its execution runs": {
			func(s *Script) { s.Served(Write{Rack: "demo", Event: "8"}) },
			"wanted the end of the execution of event 8, still got RUNNING of arn:running after 0 s",
		},
		"Served, while a pass runs": {
			func(s *Script) { s.Served(limit(3)) },
			"wanted karpenter_cpu_limit version 3 served, with all that was requested of rack demo by then, " +
				"still got {requested:5 served:4 owner:arn:running} after 0 s",
		},
		"a command": {func(s *Script) { s.Type("sleep 60") }, "`sleep 60`: no end within 0s"},
		"an error": {
			func(s *Script) {
				s.poll("a lease", func() (string, bool, error) { return "none", true, io.ErrUnexpectedEOF })
			},
			"wanted a lease, still got none (unexpected EOF) after 0 s",
		},
	} {
		var output strings.Builder
		s := Run(t.Context(), environment, &output, false, func(s *Script) {
			if !strings.HasPrefix(name, "Until") { // which run a command
				s.patience = 0
			}
			wait.play(s)
		})
		if !slices.Equal(s.Failures(), []string{wait.want}) {
			t.Errorf("%s:\n got %s\nwant %s", name, s.Failures(), wait.want)
		}
	}
}

// answer answers as AWS does when a rack has failed, one execution for it has ended and another one has the rack.
func answer(w http.ResponseWriter, r *http.Request) {
	const parameter = `{\"source\":\"aws.ssm\",\"detail\":{\"name\":\"/sawhorse/racks/demo/params/karpenter_cpu_limit\"}}`
	body, _ := io.ReadAll(r.Body)
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if strings.Contains(string(body), "arn:running") {
		action += " running"
	}
	fmt.Fprint(w, map[string]string{
		"GetParameter":              `{"Parameter":{"Version":1,"Value":"{\"state\":\"Failed\",\"failure\":{\"step\":\"queue\"}}"}}`,
		"ListStateMachines":         `{"stateMachines":[{"stateMachineArn":"arn:machine"}]}`,
		"ListExecutions":            `{"executions":[{"executionArn":"arn:ended","startDate":1},{"executionArn":"arn:running","startDate":1}]}`,
		"DescribeExecution":         `{"status":"SUCCEEDED","input":"` + parameter + `"}`,
		"ListTables":                `{"TableNames":["table"]}`,
		"GetItem":                   `{"Item":{"requested":{"N":"5"},"served":{"N":"4"},"owner":{"S":"arn:running"}}}`,
		"DescribeExecution running": `{"status":"RUNNING","input":"{\"id\":\"8\"}"}`,
	}[action])
}
