package controller

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
)

// plugin installs the NVIDIA device plugin, or removes it if it is ours. It does not wait for pods: there may be no GPU
// node yet, and a later one gets its pod when it joins.
func (r *run) plugin(ctx context.Context) error {
	if r.plan.Controller.DevicePlugin == nil {
		return r.removePlugin(ctx)
	}
	if err := refusals.UnmanagedDevicePlugin(ctx, r.client, r.plan.Rack); err != nil {
		return err
	}
	applied, err := r.client.Apply(ctx, r.plan.Rack, r.plan.Controller.DevicePlugin)
	if err != nil {
		return err
	}
	applied.Report(&r.progress, "nvidia_device_plugin_enable")
	if applied.Action == k8s.Terminating {
		return outcome.Wait(poll, "%s: an earlier one of this name is being deleted", applied.Subject)
	}
	return nil
}

func (r *run) removePlugin(ctx context.Context) error {
	live, err := r.client.Get(ctx, k8s.DaemonSet, ownership.Namespace, ownership.DevicePlugin)
	if err != nil || live == nil || k8s.Owned(live, r.plan.Rack) != nil || live.GetDeletionTimestamp() != nil {
		return err
	}
	if err := r.client.Delete(ctx, k8s.DaemonSet, live); err != nil {
		return err
	}
	r.progress.Changed("deleted", "%s", k8s.Subject(live))
	return nil
}
