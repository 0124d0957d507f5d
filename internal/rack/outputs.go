package rack

import (
	"context"
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
