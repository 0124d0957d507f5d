// Package change writes accepted change requests to Parameter Store, at its pace. No other function of Sawhorse writes
// below params/.
package change

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// SSM lists the Parameter Store calls of the step.
type SSM interface {
	store.ParameterReader
	DescribeParameters(context.Context, *ssm.DescribeParametersInput, ...func(*ssm.Options)) (*ssm.DescribeParametersOutput, error)
	PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
}

// Step writes accepted change requests.
type Step struct {
	SSM   SSM
	Store *store.Store
	Paths ownership.Paths
	Now   func() time.Time
}

// Parameter Store accepts three writes per second from an account. A call makes that many writes, and the next call
// follows after pause.
const (
	atOnce = 3
	pause  = time.Second
)

// Run writes what is left of the rack's accepted changes, one change after the other. Of the plan it needs only the
// rack's name.
func (s *Step) Run(ctx context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
	changes, err := s.Store.Changes(ctx, p.Rack)
	if err != nil {
		return outcome.Progress{}, err
	}
	changes = slices.DeleteFunc(changes, func(c store.ChangeRequest) bool { return c.State != store.ChangeAccepted })
	if len(changes) == 0 {
		return outcome.Progress{}, nil
	}
	written, err := resource.Open(ctx, s.Store, p.Rack, "change", s.Now)
	if err != nil {
		return outcome.Progress{}, err
	}
	w := writer{Step: s, Writer: written, rack: p.Rack, folder: s.Paths.Params(p.Rack), left: atOnce}
	return w.End(ctx, w.all(ctx, changes))
}

// all writes what is left of changes, as far as the call may.
func (w *writer) all(ctx context.Context, changes []store.ChangeRequest) (err error) {
	if w.live, err = store.ReadTree(ctx, w.SSM, w.folder); err != nil {
		return err
	}
	for _, c := range changes {
		all, err := w.write(ctx, c)
		if err != nil {
			return err
		}
		if !all {
			return outcome.Wait(pause, "Parameter Store takes %d writes a second; change %s goes on", atOnce, c.ID)
		}
		if err := w.Store.Finish(ctx, w.rack, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// writer is one call of the step.
type writer struct {
	*Step
	*resource.Writer
	rack, folder string
	live         store.Tree
	// left is the number of writes that the call may still make.
	left int
}

// write writes what is left of one change, as far as the call may, and reports whether that was all. Each write is
// recorded, so that the next call does not overwrite a later write by somebody else.
func (w *writer) write(ctx context.Context, c store.ChangeRequest) (all bool, err error) {
	if problem, bad := c.Problem(); bad {
		return false, w.refuse(ctx, c, problem)
	}
	if err := w.obeys(ctx, c); err != nil {
		return false, err
	}
	for _, one := range c.Left() {
		c.Written++
		if !w.missing(one) {
			continue
		}
		if w.left == 0 {
			return false, nil
		}
		if err := w.put(ctx, c, one); err != nil {
			return false, err
		}
		if err := w.Store.NoteWritten(ctx, w.rack, c.ID, c.Written); err != nil {
			return false, err
		}
	}
	return true, nil
}

// missing reports whether a write would change something. An absent parameter already has its default. If somebody has
// made the parameter a SecureString since the change was accepted, it is left alone: the function validate reports it and
// says what to do.
func (w *writer) missing(one store.Write) bool {
	differs := w.read(one.Name) != one.Value || !w.Confirms(aspect+one.Name, resource.Hash(one.Value))
	return differs && !slices.Contains(w.live.Secure, one.Name)
}

// aspect is the path of the parameters, by name, in the record of what was written.
const aspect = "parameter/"

// read returns a parameter's value as it was read.
func (w *writer) read(name string) string {
	if live, exists := w.live.Values[name]; exists {
		return live
	}
	return params.Unset
}

// standardTier is the maximum length of a value in SSM's standard tier, in bytes.
const standardTier = 4096

// put writes one parameter. An existing parameter keeps its type, which cannot be changed, and its pattern.
func (w *writer) put(ctx context.Context, c store.ChangeRequest, one store.Write) error {
	in := &ssm.PutParameterInput{Name: new(w.folder + "/" + one.Name), Value: &one.Value, Overwrite: new(true)}
	if _, exists := w.live.Values[one.Name]; !exists {
		in.Type = types.ParameterTypeString
	}
	if len(one.Value) > standardTier {
		in.Tier = types.ParameterTierIntelligentTiering
	}
	action := "written"
	if one.Value == params.Unset {
		action = "unset"
	}
	err := w.Write(ctx, resource.Write{
		Aspect: aspect + one.Name, Read: resource.Hash(w.read(one.Name)), Value: resource.Hash(one.Value),
		Change: outcome.Change{Subject: "parameter " + one.Name, Action: action},
		Do: func(ctx context.Context) error {
			_, err := w.SSM.PutParameter(ctx, in)
			return err
		},
	})
	switch reason := outcome.Code(err); { // not the message, which may contain the value
	case reason == "ParameterPatternMismatchException" || reason == "ValidationException":
		return w.refuse(ctx, c, params.Problem{Parameter: one.Name, Message: fmt.Sprintf(
			"Parameter Store does not take the value that the change request %s has for it (%s): request it again with one "+
				"that obeys the parameter's AllowedPattern, or bring the pattern up to date with `sawhorse register`%s",
			c.ID, reason, before(c, one),
		)})
	case err != nil:
		return fmt.Errorf("parameter %s: write: %w", one.Name, err)
	}
	w.left--
	w.live.Values[one.Name] = one.Value
	return nil
}

// before names the parameters that were already written when a later write is refused.
func before(c store.ChangeRequest, refused store.Write) string {
	var done []string
	for _, one := range c.Writes() {
		if one.Name < refused.Name {
			done = append(done, one.Name)
		}
	}
	if len(done) == 0 {
		return ""
	}
	return "; the change has been made to " + strings.Join(done, ", ")
}

// refuse ends a change that Parameter Store will never accept, and this iteration with it, because its plan was made
// for the change. It requests another iteration, which makes a plan without the change.
func (w *writer) refuse(ctx context.Context, c store.ChangeRequest, problem params.Problem) error {
	if err := w.Store.Request(ctx, w.rack); err != nil {
		return err
	}
	if err := w.Store.Refuse(ctx, w.rack, c.ID); err != nil {
		return err
	}
	return &outcome.Rejected{Change: c.ID, Problems: []params.Problem{problem}}
}
