package rack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// ParameterWriter is what status and outputs need of SSM. It never writes under params/.
type ParameterWriter interface {
	ParameterReader
	PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
	DeleteParameter(context.Context, *ssm.DeleteParameterInput, ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error)
}

// Published is what users read of a rack in Parameter Store.
type Published struct {
	SSM   ParameterWriter
	Paths names.Paths
}

// WriteStatus replaces the rack's status.
func (p Published) WriteStatus(ctx context.Context, rack, status string) error {
	return p.write(ctx, p.Paths.Status(rack), status, "What Sawhorse made of the rack's parameters")
}

// NoteOutputs keeps what a step says of the rack's outputs until a report publishes them; an empty value says that one goes. They
// belong to the rack and not to a run: the one that a step has told them to may be stopped before its report, and the next finds
// the step done. Calls of one rack follow each other, so reading and writing back loses nothing.
func (s *Store) NoteOutputs(ctx context.Context, rack string, outputs map[string]string) error {
	all, err := s.Outputs(ctx, rack)
	if err != nil {
		return err
	}
	maps.Copy(all, outputs)
	encoded, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("rack %s: encode outputs: %w", rack, err)
	}
	values := key(rack, "outputs")
	values["outputs"] = text(string(encoded))
	return wrap(s.put(ctx, values, nil), "rack %s: note outputs", rack)
}

// Outputs are what the steps said last of the rack's outputs; an empty value is one that is to be gone.
func (s *Store) Outputs(ctx context.Context, rack string) (map[string]string, error) {
	outputs := map[string]string{}
	values, err := s.get(ctx, key(rack, "outputs"))
	if err != nil || values == nil {
		return outputs, wrap(err, "rack %s: read outputs", rack)
	}
	if err := json.Unmarshal([]byte(stringOf(values, "outputs")), &outputs); err != nil {
		return nil, fmt.Errorf("rack %s: decode outputs: %w", rack, err)
	}
	return outputs, nil
}

// WriteOutputs brings the outputs named to the values given; an empty value removes one. Others stay.
func (p Published) WriteOutputs(ctx context.Context, rack string, wanted map[string]string) error {
	if len(wanted) == 0 {
		return nil
	}
	folder := p.Paths.Outputs(rack)
	live, err := ReadTree(ctx, p.SSM, folder)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		place := folder + "/" + name
		switch have, exists := live.Values[name]; {
		case wanted[name] == "" && exists:
			if err := p.delete(ctx, place); err != nil {
				return err
			}
		case wanted[name] != "" && have != wanted[name]:
			if err := p.write(ctx, place, wanted[name], "Made by Sawhorse"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Forget deletes a rack's status and outputs.
func (p Published) Forget(ctx context.Context, rack string) error {
	live, err := ReadTree(ctx, p.SSM, p.Paths.Outputs(rack))
	if err != nil {
		return err
	}
	gone := map[string]string{}
	for name := range live.Values {
		gone[name] = ""
	}
	if err := p.WriteOutputs(ctx, rack, gone); err != nil {
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
	var gone *types.ParameterNotFound
	if err == nil || errors.As(err, &gone) {
		return nil
	}
	return fmt.Errorf("parameter %s: delete: %w", place, err)
}
