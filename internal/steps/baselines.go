package steps

import "context"

// Baselines keeps how things were found before Sawhorse's first change to them, so that they can be put back.
type Baselines interface {
	// Keep records a baseline; only the first call for a name counts.
	Keep(ctx context.Context, rack, name string, value []byte) error
	// Get is what Keep recorded, if anything.
	Get(ctx context.Context, rack, name string) ([]byte, bool, error)
	// Forget ends a baseline that has been restored.
	Forget(ctx context.Context, rack, name string) error
}

// RemovalKey is under which the step nodepools keeps that it has begun to remove the rack's pools, until none of them is
// left. From then on their nodes drain, whatever the guards of a removal say.
const RemovalKey = "removal"
