package audit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The function serves many clusters: each observation connects to its own, also after one that could not be reached.
func TestEachObservationOfTheCNIConnectsAnew(t *testing.T) {
	var reached []string
	dial := func(_ context.Context, of plan.Cluster) (*k8s.Client, error) {
		reached = append(reached, of.Name)
		return nil, errors.New("out of reach: " + of.Name)
	}
	observe := cni(dial, nil, slog.New(slog.DiscardHandler))
	for _, name := range []string{"a", "b", "b", "a"} {
		if _, err := observe(t.Context(), plan.Cluster{Name: name}); err == nil || err.Error() != "out of reach: "+name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.Equal(reached, []string{"a", "b", "b", "a"}) {
		t.Errorf("reached %v", reached)
	}
}
