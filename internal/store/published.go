package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Status returns the complete status of the last report, or nil if there is none.
func (s *Store) Status(ctx context.Context, rack string) (*Status, error) {
	values, err := s.get(ctx, key(rack, "status"))
	if err != nil || values == nil || values["status"] == nil {
		return nil, wrap(err, "rack %s: read status record", rack)
	}
	status := &Status{}
	err = unpack(values, "status", status)
	if err == nil && values["incidents"] != nil {
		err = unpack(values, "incidents", &status.Incidents)
	}
	if err != nil {
		return nil, fmt.Errorf("rack %s: decode status: %w", rack, err)
	}
	return status, nil
}

// Same reports whether two statuses have the same content, in any order of problems and warnings. What tells only of the
// pass of a status does not count: its time, its changes, what it did to the pools, its incidents. Nor do the pools of a
// paused rack: their counts of nodes change all the time.
func (s Status) Same(other Status) bool {
	return s.lasting().content() == other.lasting().content()
}

// lasting returns a status without what tells only of its pass.
func (s Status) lasting() Status {
	s.Problems, s.Warnings, s.Effects = inOrder(s.Problems), inOrder(s.Warnings), nil
	for _, incident := range s.Incidents {
		if i := slices.Index(s.Warnings, incident); i >= 0 { // the same text can be a warning too, which stays
			s.Warnings = slices.Delete(s.Warnings, i, i+1)
		}
	}
	return s
}

func inOrder(problems []params.Problem) []params.Problem {
	return slices.SortedFunc(slices.Values(problems), func(a, b params.Problem) int {
		return cmp.Or(strings.Compare(a.Parameter, b.Parameter), strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
}

// PublishedDiffers compares what Parameter Store has of a rack with the status and the outputs that were last written. It returns
// "" if they are the same, and else what differs.
func PublishedDiffers(ctx context.Context, reader ParameterReader, paths ownership.Paths, rack string, reported Reported,
	outputs map[string]string) (string, error) {
	folder := strings.TrimSuffix(paths.Status(rack), "/status")
	direct, err := readTree(ctx, reader, folder, false)
	if err != nil {
		return "", err
	}
	if !reported.Published(direct.Values["status"]) {
		return "parameter " + paths.Status(rack), nil
	}
	if len(outputs) == 0 {
		return "", nil
	}
	live, err := ReadTree(ctx, reader, paths.Outputs(rack))
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if live.Values[name] != outputs[name] {
			return "parameter " + paths.Outputs(rack) + "/" + name, nil
		}
	}
	return "", nil
}
