package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Same reports whether two statuses have the same content, in any order of problems and warnings. What tells only of the
// pass of a status does not count: its time, its changes, what it did to the pools, its incidents, its snapshot. Nor do the pools of a
// paused rack: their counts of nodes change all the time.
func (s Status) Same(other Status) bool {
	return s.lasting().content() == other.lasting().content()
}

// lasting returns a status without what tells only of its pass.
func (s Status) lasting() Status {
	s.Problems, s.Warnings, s.Effects = inOrder(s.Problems), inOrder(s.Warnings), nil
	s.Snapshot = nil
	for _, incident := range s.Incidents {
		if i := slices.Index(s.Warnings, incident); i >= 0 { // the same text can be a warning too, which stays
			s.Warnings = slices.Delete(s.Warnings, i, i+1)
		}
	}
	return s
}

// NewWarnings returns the warnings of a status that the one before did not have, and the number of the others. before is nil if
// there was none. An incident is new whenever it happens.
func (s Status) NewWarnings(before *Status) (warnings []params.Problem, unchanged int) {
	if before == nil {
		return s.Warnings, 0
	}
	reported, incidents := slices.Clone(before.Warnings), slices.Clone(s.Incidents)
	for _, w := range s.Warnings {
		if i := slices.Index(incidents, w); i >= 0 {
			incidents, warnings = slices.Delete(incidents, i, i+1), append(warnings, w)
		} else if i := slices.Index(reported, w); i >= 0 {
			reported = slices.Delete(reported, i, i+1)
			unchanged++
		} else {
			warnings = append(warnings, w)
		}
	}
	return warnings, unchanged
}

func inOrder(problems []params.Problem) []params.Problem {
	return slices.SortedFunc(slices.Values(problems), func(a, b params.Problem) int {
		return cmp.Or(strings.Compare(a.Parameter, b.Parameter), strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
}

// Live is what Parameter Store has of a rack's status and outputs.
type Live struct {
	paths           ownership.Paths
	rack            string
	status, outputs string
}

// ReadLive reads the status and the outputs of a rack.
func ReadLive(ctx context.Context, reader ParameterReader, paths ownership.Paths, rack string) (Live, error) {
	direct, err := readTree(ctx, reader, paths.Rack(rack), false)
	return Live{paths: paths, rack: rack, status: direct.Values["status"], outputs: direct.Values["outputs"]}, err
}

// Differs compares with the status that was last written and the outputs that the steps recorded. It returns "" if they are
// the same, and else what differs.
func (l Live) Differs(reported Reported, recorded map[string]string) string {
	if !reported.Published(l.status) {
		return "parameter " + l.paths.Status(l.rack)
	}
	if len(recorded) > 0 && l.outputs != outputsText(recorded) {
		return "parameter " + l.paths.Outputs(l.rack)
	}
	return ""
}
