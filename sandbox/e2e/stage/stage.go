package stage

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/story"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// Stage is a sandbox in the hands of one test.
type Stage struct {
	t           *testing.T
	Environment user.Environment
}

// Run runs scripts one after the other, in one sandbox, until one fails. The first ones usually bring the rack into the
// state from which the last one starts. Each failed check is an error of the test.
func (s *Stage) Run(scripts ...func(*story.Script)) {
	t, environment := s.t, s.Environment
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// The sandbox records authorization decisions by script.
	name := "script?name=" + url.QueryEscape(strings.TrimPrefix(t.Name(), "Test"))
	if err := environment.Sandbox(ctx, http.MethodPost, name, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		var output strings.Builder
		run := story.Run(ctx, environment, &output, false, script)
		for _, failure := range run.Failures() {
			t.Error(failure)
		}
		if run.Passed() == 0 {
			t.Error("the script has checked nothing")
		}
		if t.Failed() || testing.Verbose() {
			t.Log(output.String())
			t.Log(lag(ctx, environment))
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// lag returns the settings that reproduce this sandbox's lag in another sandbox.
func lag(ctx context.Context, environment user.Environment) string {
	var chosen struct {
		Seed  string
		Scale float64
	}
	if err := environment.Sandbox(ctx, http.MethodGet, "lag", nil, &chosen); err != nil {
		return err.Error()
	}
	if chosen.Scale == 0 {
		return "played with LAG=0"
	}
	return fmt.Sprintf("played with LAG=1 LAG_SEED=%s LAG_SCALE=%g", chosen.Seed, chosen.Scale)
}
