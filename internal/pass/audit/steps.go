package audit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
)

// Steps runs steps with clients that refuse to write: a step that has something to do ends where it would make its
// first change. So what an audit finds and what the step repairs cannot differ.
type Steps struct {
	functions map[string]bool
	connect   func() map[string]outcome.StepFunc
}

// NewSteps returns the steps of some functions. connect makes them for one plan, by function: they share a connection
// to its cluster, whose credentials expire.
func NewSteps(connect func() map[string]outcome.StepFunc) *Steps {
	functions := map[string]bool{}
	for name := range connect() {
		functions[name] = true
	}
	return &Steps{functions: functions, connect: connect}
}

// Audits reports whether a step is one of these.
func (s *Steps) Audits(step plan.Step) bool { return s.functions[step.Function] }

// patience is how long all reads of the steps may take, of a function's 60 s. The audits that begin in the same minute
// share the rates of EKS and IAM, and wait for each other. A step that has not ended by then counts as due, and the pass
// gives it more time.
const patience = 40 * time.Second

// Due runs steps side by side and returns those that a pass would have to run, by name, with the reason. A step that
// cannot read what it needs is due too: the pass reports why. warned are the warnings of each step's last run.
func (s *Steps) Due(ctx context.Context, p *plan.Plan, list []plan.Step, warned map[string][]params.Problem) map[string]string {
	due := map[string]string{}
	if len(list) == 0 {
		return due
	}
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	functions := s.connect()
	var running sync.WaitGroup
	var mutex sync.Mutex
	for _, step := range list {
		running.Go(func() {
			progress, err := functions[step.Function](ctx, p, step.Part)
			if why := reason(step, progress, err, warned[step.Name]); why != "" {
				mutex.Lock()
				defer mutex.Unlock()
				due[step.Name] = why
			}
		})
	}
	running.Wait()
	return due
}

// reason returns why a pass would have to run a step, or "". A precheck has nothing to prepare while the step that it
// is for is not due: alone, it counts only if it rejects or fails.
func reason(step plan.Step, progress outcome.Progress, err error, warned []params.Problem) string {
	precheck, progress := step.PrecheckFor != "", progress.Shortened() // the records have shortened warnings
	switch {
	case errors.Is(err, readonly.ErrWouldWrite) && precheck:
		return ""
	case err != nil:
		return outcome.Shorten(err.Error())
	case precheck:
		return ""
	case progress.Wait > 0:
		return "it would wait: " + progress.Note
	case progress.Unfinished:
		return "it is not finished"
	case !slices.Equal(progress.Warnings, warned):
		return "its warnings have changed"
	}
	return ""
}
