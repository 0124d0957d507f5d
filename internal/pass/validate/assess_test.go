package validate

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
)

// The same input has the same verdict: assessing changes nothing of what was read, neither the plan in force nor the
// records.
func TestAssessChangesNothingOfItsInput(t *testing.T) {
	for what, of := range map[string]func(*testing.T) *scene{
		"a rack that there is not": func(t *testing.T) *scene { return begin(t) },
		"a new rack":               func(t *testing.T) *scene { return begin(t, auth, on) },
		"one in order":             func(t *testing.T) *scene { return audited(t) },
		"another limit":            func(t *testing.T) *scene { return written(audited(t), "karpenter_cpu_limit=200") },
		"turned off":               func(t *testing.T) *scene { return written(audited(t), off) },
		"paused":                   func(t *testing.T) *scene { return written(audited(t), off, "paused=true") },
		"rejected, with a freeze":  func(t *testing.T) *scene { return written(audited(t), bad, frozen) },
		"a version that was taken back": func(t *testing.T) *scene {
			s := running(t)
			s.put("1.12.1")
			s.applied(s.tries("1.12.1"), true)
			return written(s, bad)
		},
		"a change": func(t *testing.T) *scene {
			s := audited(t)
			s.change(`{"set":{"karpenter_freeze":"true"}}`)
			return s
		},
	} {
		for _, full := range []bool{false, true} {
			s := of(t)
			s.wrong = map[string]string{"queue": "it is gone"}
			in, err := s.validate.stored(t.Context(), request{rack: "demo", generation: 9, full: full})
			s.must(err)
			in, err = s.validate.observed(t.Context(), in)
			s.must(err)
			text := func() string {
				return strings.Join([]string{
					string(canonical.JSON(in.inForce)), string(canonical.JSON(in.records)), string(canonical.JSON(in.parsed)),
					string(canonical.JSON(in.facts)), string(canonical.JSON(in.found)),
				}, "\n")
			}
			before, first := text(), assess(in)
			if after := text(); after != before {
				t.Errorf("%s, full %v: was\n%s\nis\n%s", what, full, before, after)
			}
			if second := assess(in); !reflect.DeepEqual(first, second) {
				t.Errorf("%s, full %v: first\n%+v\nthen\n%+v", what, full, first, second)
			}
		}
	}
}

func written(s *scene, parameters ...string) *scene {
	s.write(parameters...)
	return s
}
