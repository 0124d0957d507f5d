// Package stages defines the life cycles that kwok simulates: a node becomes Ready and sends heartbeats; a pod runs,
// completes and is deleted.
package stages

import (
	"fmt"
	"strings"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

// IgnoresSignals, with the value true, is the annotation of a pod whose processes ignore the termination signal. Such a
// pod is deleted when its grace period is over. Other pods are deleted at once.
const IgnoresSignals = "sandbox.sawhorse.dev/ignores-signals"

// NoNetwork, with the value true, is the annotation of a pod that gets no address: its containers do not start.
const NoNetwork = "sandbox.sawhorse.dev/no-network"

const podNoNetwork = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-no-network
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {` + NoNetwork + `: "true"}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: '.status.conditions.[] | select( .type == "PodReadyToStartContainers" ) | .status', operator: DoesNotExist}
  next:
    event:
      type: Warning
      reason: FailedCreatePodSandBox
      message: >-
        Failed to create pod sandbox: plugin type="aws-cni" name="aws-cni" failed (add):
        add cmd: failed to assign an IP address to container
    statusTemplate: |
      conditions:
      - {type: PodReadyToStartContainers, status: "False", lastTransitionTime: {{ Now | Quote }}}
`

// network is the condition of a pod whose containers may start. kwok's own stages do not have it.
const network = `conditions:
      - lastTransitionTime: {{ $now | Quote }}
        status: "True"
        type: PodReadyToStartContainers
`

const podKill = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-kill
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {` + IgnoresSignals + `: "true"}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
  delay:
    durationFrom: {expressionFrom: .metadata.deletionTimestamp}
  next: {delete: true}
`

// All returns the stages, by the kind of object that they are for.
func All() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{
		nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
		strings.Replace(podfast.DefaultPodReady, "conditions:\n", network, 1), podfast.DefaultPodComplete, podfast.DefaultPodDelete, podKill,
		podNoNetwork,
	} {
		stage := &v1alpha1.Stage{}
		if err := yaml.Unmarshal([]byte(text), stage); err != nil {
			return nil, fmt.Errorf("stage: decode: %w", err)
		}
		if stage.Spec.ResourceRef.Kind == "Pod" {
			// Karpenter's own pods run the real controller: its process decides when they are Ready and
			// when they are deleted.
			leaveOut(stage, `.metadata.labels["app.kubernetes.io/name"]`, "karpenter")
		}
		if stage.Name == "pod-ready" {
			leaveOut(stage, `.metadata.annotations["`+NoNetwork+`"]`, "true")
		}
		if stage.Name == "pod-delete" {
			leaveOut(stage, `.metadata.annotations["`+IgnoresSignals+`"]`, "true")
		}
		internal, err := internalversion.ConvertToInternalStage(stage)
		if err != nil {
			return nil, fmt.Errorf("stage %s: convert: %w", stage.Name, err)
		}
		stages[internal.Spec.ResourceRef] = append(stages[internal.Spec.ResourceRef], internal)
	}
	return stages, nil
}

// leaveOut excludes objects that have the value at the key from a stage.
func leaveOut(stage *v1alpha1.Stage, key, value string) {
	if stage.Spec.Selector == nil {
		stage.Spec.Selector = &v1alpha1.StageSelector{}
	}
	stage.Spec.Selector.MatchExpressions = append(stage.Spec.Selector.MatchExpressions, v1alpha1.MatchExpression{
		//lint:ignore SA1019 kwok's own stages are written in these fields, and a selector has either kind
		Key: key, Operator: v1alpha1.SelectorOpNotIn, Values: []string{value},
	})
}
