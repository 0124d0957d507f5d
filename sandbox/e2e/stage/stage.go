// Package stage gives the end-to-end scripts a sandbox. Each test binary has its own, which starts with the first
// script and ends with the binary, even if the binary crashes.
package stage

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/attached"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// Running is the name of an environment variable. If it is set, the scripts use a sandbox that already runs: the value
// is the path of its environment file, as `make sandbox` prints it.
const Running = "SANDBOX_ENV"

// Alone is the name of another. If it is "yes", each script gets a new sandbox, so that it shows that it needs nothing that
// another one leaves behind (make alone).
const Alone = "SANDBOX_ALONE"

// Stage is a sandbox that starts on first use.
type Stage struct {
	root, state string
	environment user.Environment
	// script is the test that uses the sandbox.
	script string
	end    func() error
}

// New returns a Stage. root is the checkout, name is the sandbox's state folder in .cache.
func New(root, name string) *Stage {
	return &Stage{root: root, state: filepath.Join(root, ".cache", name), end: func() error { return nil }}
}

// Main runs the tests and then ends the sandbox.
func (s *Stage) Main(m *testing.M) {
	code := m.Run()
	if err := s.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Environment returns the environment for users of the sandbox. It starts the sandbox if necessary, and with Alone a new
// one for each test.
func (s *Stage) Environment(t *testing.T) user.Environment {
	t.Helper()
	var err error
	if os.Getenv(Alone) == "yes" && s.environment != nil && s.script != t.Name() {
		err, s.environment = s.end(), nil
	}
	if s.script = t.Name(); err == nil && s.environment == nil {
		s.environment, err = s.up()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.environment
}

// Run runs scripts one after the other, in one sandbox, until one fails. The first ones usually bring the rack into the
// state from which the last one starts. Each failed check is an error of the test.
func (s *Stage) Run(t *testing.T, scripts ...func(*story.Script)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	environment := s.Environment(t)
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

// up starts an attached sandbox and returns its environment. If Running is set, it uses that sandbox instead.
func (s *Stage) up() (environment user.Environment, err error) {
	if path := os.Getenv(Running); path != "" {
		return user.Read(context.Background(), path)
	}
	environment, end, err := attached.Start(context.Background(), s.root, s.state)
	if err == nil {
		s.end = end
	}
	return environment, err
}
