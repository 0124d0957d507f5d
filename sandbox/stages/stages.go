// Package stages chooses the life cycles that kwok plays: a node becomes Ready and beats, a pod runs, completes and goes.
package stages

import (
	"fmt"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

// All are the stages, by the kind of object that they are for.
func All() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{
		nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	} {
		stage := &v1alpha1.Stage{}
		if err := yaml.Unmarshal([]byte(text), stage); err != nil {
			return nil, fmt.Errorf("stage: decode: %w", err)
		}
		if stage.Spec.ResourceRef.Kind == "Pod" {
			leaveKarpenterOut(stage)
		}
		internal, err := internalversion.ConvertToInternalStage(stage)
		if err != nil {
			return nil, fmt.Errorf("stage %s: convert: %w", stage.Name, err)
		}
		stages[internal.Spec.ResourceRef] = append(stages[internal.Spec.ResourceRef], internal)
	}
	return stages, nil
}

// leaveKarpenterOut keeps a pod stage away from Karpenter's own pods: the sandbox runs the real controller for them, and
// they are Ready and gone when that process says so.
func leaveKarpenterOut(stage *v1alpha1.Stage) {
	if stage.Spec.Selector == nil {
		stage.Spec.Selector = &v1alpha1.StageSelector{}
	}
	stage.Spec.Selector.MatchExpressions = append(stage.Spec.Selector.MatchExpressions, v1alpha1.MatchExpression{
		//lint:ignore SA1019 kwok's own stages are written in these fields, and a selector has either kind
		Key: `.metadata.labels["app.kubernetes.io/name"]`, Operator: v1alpha1.SelectorOpNotIn, Values: []string{"karpenter"},
	})
}
