package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// ParameterWriter is the part of SSM's API that status and outputs need. Nothing is written under params/.
type ParameterWriter interface {
	ParameterReader
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
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
	place := p.Paths.Status(rack)
	out, err := p.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &place})
	if errors.As(err, new(*types.ParameterNotFound)) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("parameter %s: read: %w", place, err)
	}
	return *out.Parameter.Value, nil
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

// WriteOutputs sets the given outputs. An empty value removes an output. Other outputs stay.
func (p Published) WriteOutputs(ctx context.Context, w *resource.Writer, rack string, wanted map[string]string) error {
	if len(wanted) == 0 {
		return nil
	}
	live, err := ReadTree(ctx, p.SSM, p.Paths.Outputs(rack))
	if err != nil {
		return err
	}
	return p.writeOutputs(ctx, w, rack, live, wanted)
}

// aspectOutputs is the path of the outputs, by name, in the record of what was written.
const aspectOutputs = "outputs/"

func (p Published) writeOutputs(ctx context.Context, w *resource.Writer, rack string, live Tree, wanted map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		place := p.Paths.Outputs(rack) + "/" + name
		do := func(ctx context.Context) error { return p.write(ctx, place, wanted[name], "Made by Sawhorse") }
		if wanted[name] == "" {
			do = func(ctx context.Context) error { return p.delete(ctx, place) }
		}
		write := resource.Write{Aspect: aspectOutputs + name, Read: live.Values[name], Value: wanted[name], Do: do}
		if err := w.Write(ctx, write); err != nil {
			return err
		}
	}
	return nil
}

// Forget deletes a rack's status and outputs.
func (p Published) Forget(ctx context.Context, w *resource.Writer, rack string) error {
	live, err := ReadTree(ctx, p.SSM, p.Paths.Outputs(rack))
	if err != nil {
		return err
	}
	gone := map[string]string{}
	for _, name := range w.Unseen(aspectOutputs) {
		gone[name] = ""
	}
	for name := range live.Values {
		gone[name] = ""
	}
	if err := p.writeOutputs(ctx, w, rack, live, gone); err != nil {
		return err
	}
	return p.delete(ctx, p.Paths.Status(rack))
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
