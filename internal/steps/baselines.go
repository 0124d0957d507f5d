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

// OffKey is under which the first step of turning off keeps that there was room, before anything was changed for it, until Karpenter
// is off, or the hand-over to it is done again. In between nothing is refused any more: it would leave the rack half off.
const OffKey = "off"

// AutoscalerKey is under which the Cluster Autoscaler's baseline is kept; its fields are the step autoscaler's.
const AutoscalerKey = "autoscaler"

// SizeKey is under which the size is kept that a build group had before it was emptied: a plan.Scaling as JSON.
func SizeKey(group string) string { return "nodegroup/" + group }

// ForgetKept ends a baseline if there is one: a step that finds nothing to do writes nothing.
func ForgetKept(ctx context.Context, baselines Baselines, rack, name string) error {
	_, ok, err := baselines.Get(ctx, rack, name)
	if err != nil || !ok {
		return err
	}
	return baselines.Forget(ctx, rack, name)
}
