package story

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// Status is a rack's status, as docs/operate.md describes it. State is empty if the rack has none.
type Status struct {
	State, Goal string
	Problems    []struct{ Parameter string }
	Failure     struct{ Step string }
	Brakes      []string
	Change      struct {
		Version  int64
		Outcome  string
		Problems []struct{ Parameter, Message string }
	}
	Pools []struct {
		Pool                                string
		Nodes, Outdated, Retiring, Rotating int
		Ready                               bool
		Held                                string
	}
	Rollout struct{ Ended string }
	Latest  []struct {
		Alias, Image string
		Older        int
	}
	// Running is the pass that waits, beside the outcome of an earlier one.
	Running struct{ Step, Note string }
	// text is the parameter's value, version its version in Parameter Store.
	text    string
	version int64
}

// wrong returns the parameters that the problems name.
func (s Status) wrong() string {
	var names []string
	for _, p := range s.Problems {
		names = append(names, p.Parameter)
	}
	return strings.Join(names, " ")
}

// outputs reads what Sawhorse made for the rack demo.
const outputs = "aws ssm get-parameter --name /sawhorse/racks/demo/outputs --query Parameter.Value --output text"

// output prints one of them, null if it is absent.
func output(name string) string { return outputs + " | jq -r ." + name }

// changed returns what the status says of the last change: its version, its outcome, and the parameters that have problems.
func (s Status) changed() string {
	text := fmt.Sprint(s.Change.Version, " ", s.Change.Outcome)
	for _, p := range s.Change.Problems {
		text += " " + p.Parameter
	}
	return text
}

// Status reads the status of the rack demo.
func (s *Script) Status() Status { return s.statusOf("demo") }

func (s *Script) statusOf(rack string) Status {
	name := folder(rack) + "status"
	out, err := ssm.NewFromConfig(s.env.AWS()).GetParameter(s.ctx, &ssm.GetParameterInput{Name: &name})
	var status Status
	if errors.As(err, new(*types.ParameterNotFound)) {
		return status
	}
	if err == nil {
		status.text, status.version = *out.Parameter.Value, out.Parameter.Version
		err = json.Unmarshal([]byte(status.text), &status)
	}
	if err != nil {
		s.fail("parameter %s: %v", name, err)
	}
	return status
}

// Reconciled waits until passes have served everything that the script has written, and checks that the rack is as its
// parameters say. The last writes can be given as arguments: s.Reconciled(s.Put("paused", "false")).
func (s *Script) Reconciled(...Write) { s.becomes("Reconciled") }

// Rejected waits in the same way, and checks that the pass has rejected the parameters, with these sentences.
func (s *Script) Rejected(sentences ...string) { s.becomes("Rejected", sentences...) }

// Paused waits in the same way, and checks that the pass has changed nothing because the rack is paused.
func (s *Script) Paused() { s.becomes("Paused") }

// Failed waits in the same way, and checks that the pass has failed, with these sentences.
func (s *Script) Failed(sentences ...string) { s.becomes("Failed", sentences...) }

func (s *Script) becomes(state string, sentences ...string) {
	s.Served()
	s.State(state)
	s.Says(sentences...)
}

// State checks the state in the rack's status.
func (s *Script) State(wanted string) {
	state, where := s.state()
	s.verify(state == wanted, "state", "", wanted, state, where)
}

// UntilState waits for a state in the rack's status, for what changes without a write.
func (s *Script) UntilState(wanted string, within time.Duration) {
	s.await("state", s.state, wanted, within)
}

// state returns the state in the rack's status, and that status for the message of a failed check.
func (s *Script) state() (state, where string) {
	status := s.Status()
	return status.State, " from the status of rack demo: " + cmp.Or(status.text, "there is none")
}

// Says checks that the status contains texts.
func (s *Script) Says(texts ...string) {
	for _, text := range texts {
		status := s.Status()
		s.verify(status.says(text), "status", "text with ", text, status.text, "")
	}
}

// Omits checks that the status does not contain a text.
func (s *Script) Omits(text string) {
	status := s.Status()
	s.verify(!status.says(text), "status", "text without ", text, status.text, "")
}

// joined returns the members of a set, sorted.
func joined(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), " ")
}

// says reports whether the status contains a text, in any field.
func (s Status) says(text string) bool {
	inside := strings.Trim(encoded(text), `"`)
	return strings.Contains(s.text, text) || strings.Contains(s.text, inside)
}

// states returns the states that the rack's status has had after a version of it, each once.
func (s *Script) states(after int64) string {
	seen := map[string]bool{}
	for _, written := range JSON[[]struct {
		Value   string
		Version int64
	}](s, "aws ssm get-parameter-history --name "+folder("demo")+"status --query Parameters") {
		var status Status
		if json.Unmarshal([]byte(written.Value), &status) == nil && written.Version > after && status.Running.Step == "" {
			seen[status.State] = true
		}
	}
	return joined(seen)
}
