package outcome

import "context"

// Baselines records the state of a resource before Sawhorse first changes it, so that the state can be restored.
type Baselines interface {
	// Keep records a baseline. Only the first call for a name has an effect.
	Keep(ctx context.Context, rack, name string, value []byte) error
	// Get returns what Keep recorded, and whether there is such a baseline.
	Get(ctx context.Context, rack, name string) ([]byte, bool, error)
	// Forget deletes a baseline, once it has been restored.
	Forget(ctx context.Context, rack, name string) error
}

// RemovalKey names the record that the step nodepools has begun to remove the rack's pools. The record exists until no
// pool is left. Meanwhile the pools' nodes drain, even if a precheck of the removal would now reject it.
const RemovalKey = "removal"

// OffKey names the record that the capacity check for turning Karpenter off has passed. The first step of turning off
// writes it before it changes anything. The record exists until Karpenter is off or the hand-over to Karpenter is done
// again. Meanwhile turning off is not rejected any more, because that would leave the rack half off.
const OffKey = "off"

// AutoscalerKey names the baseline of Cluster Autoscaler. The step autoscaler defines its fields.
const AutoscalerKey = "autoscaler"

// SizeKey names the record of a build group's size before the group was emptied: a plan.Scaling as JSON.
func SizeKey(group string) string { return "nodegroup/" + group }

// ForgetKept deletes a baseline if it exists. It reads first, so that a step that finds nothing to do writes nothing.
func ForgetKept(ctx context.Context, baselines Baselines, rack, name string) error {
	_, ok, err := baselines.Get(ctx, rack, name)
	if err != nil || !ok {
		return err
	}
	return baselines.Forget(ctx, rack, name)
}
