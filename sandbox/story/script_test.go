package story

import (
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
		`first: a number: wanted "5", got "4 from ` + "`echo 4`" + `"`,
		`a text: wanted text with "none", got "text from ` + "`echo text`" + `"`,
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
