package store

import (
	"context"
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// ParameterWriter is the part of SSM's API that status, outputs and snapshots need. Nothing is written under params/.
type ParameterWriter interface {
	ChangeReader
	PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
	DeleteParameter(context.Context, *ssm.DeleteParameterInput, ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error)
}

// Published writes what users read of a rack in Parameter Store.
type Published struct {
	SSM   ParameterWriter
	Paths ownership.Paths
}

// Status reads the text of the rack's status. It is empty if there is none.
func (p Published) Status(ctx context.Context, rack string) (string, error) {
	return p.read(ctx, p.Paths.Status(rack))
}

// WriteStatus replaces the rack's status.
func (p Published) WriteStatus(ctx context.Context, rack, status string) error {
	return p.write(ctx, p.Paths.Status(rack), status, "What Sawhorse made of the rack's parameters")
}

// NoteOutputs records a step's outputs until a report publishes them. An empty value removes an output. Outputs belong
// to the rack and not to a run: a run may be stopped before its report, and the next run finds the step done. Calls for
// one rack are sequential, so read and write back loses nothing. Outputs that are recorded already are not written
// again.
func (s *Store) NoteOutputs(ctx context.Context, rack string, outputs map[string]string) error {
	all, err := s.Outputs(ctx, rack)
	if err != nil {
		return err
	}
	before := maps.Clone(all)
	if maps.Copy(all, outputs); maps.Equal(all, before) {
		return nil
	}
	values := key(rack, "outputs")
	values["outputs"] = plain(all)
	return wrap(s.put(ctx, values, nil), "rack %s: note outputs", rack)
}

// Outputs returns the outputs that the steps last recorded. An empty value means that the output is to be removed.
func (s *Store) Outputs(ctx context.Context, rack string) (map[string]string, error) {
	outputs := map[string]string{}
	_, err := s.load(ctx, key(rack, "outputs"), rack, "outputs", "outputs", &outputs)
	return outputs, err
}

// outputsText returns the text of a rack's parameter outputs, in the form of events.Outputs, for what the steps recorded. It
// is empty if nothing is left.
func outputsText(recorded map[string]string) string {
	made := maps.Clone(recorded)
	maps.DeleteFunc(made, func(_, value string) bool { return value == "" })
	if len(made) == 0 {
		return ""
	}
	return string(canonical.JSON(made))
}

// WriteOutputs writes the outputs that the steps recorded (see NoteOutputs), where they differ from those that Parameter
// Store has. If none is left, it deletes the parameter.
func (p Published) WriteOutputs(ctx context.Context, w *resource.Writer, rack string, recorded map[string]string) error {
	if len(recorded) == 0 {
		return nil
	}
	return p.writeOutputs(ctx, w, rack, outputsText(recorded))
}

// writeOutputs writes or deletes the parameter. SSM accepts three writes a second in an account.
func (p Published) writeOutputs(ctx context.Context, w *resource.Writer, rack, text string) error {
	place := p.Paths.Outputs(rack)
	live, err := p.read(ctx, place)
	if err != nil {
		return err
	}
	do := func(ctx context.Context) error { return p.write(ctx, place, text, "What Sawhorse made for the rack") }
	if text == "" {
		do = func(ctx context.Context) error { return p.delete(ctx, place) }
	}
	return w.Write(ctx, resource.Write{Aspect: "outputs", Read: live, Value: text, Do: do})
}

// Forget deletes a rack's status and outputs.
func (p Published) Forget(ctx context.Context, w *resource.Writer, rack string) error {
	if err := p.writeOutputs(ctx, w, rack, ""); err != nil {
		return err
	}
	return p.delete(ctx, p.Paths.Status(rack))
}

// read returns the text of a parameter. It is empty if the parameter is not there.
func (p Published) read(ctx context.Context, place string) (string, error) {
	version, err := ReadVersion(ctx, p.SSM, place)
	if err != nil || version == nil {
		return "", err
	}
	return version.Text, nil
}

func (p Published) write(ctx context.Context, place, text, description string) error {
	_, err := p.SSM.PutParameter(ctx, &ssm.PutParameterInput{
		Name: &place, Value: &text, Type: types.ParameterTypeString, Overwrite: new(true), Description: &description,
	})
	return wrap(err, "parameter %s: write", place)
}

func (p Published) delete(ctx context.Context, place string) error {
	_, err := p.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &place})
	if errors.As(err, new(*types.ParameterNotFound)) {
		return nil
	}
	return wrap(err, "parameter %s: delete", place)
}
