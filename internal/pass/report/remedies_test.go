package report

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// errorEquals finds the names of AWS's errors in the state machine.
var errorEquals = regexp.MustCompile(`"((?:States|Lambda|Sandbox|Runtime|DynamoDB)\.[A-Za-z0-9]+)"`)

// Every error that the state machine handles by name has its own remedy, except those that never end a pass as failed.
func TestEveryErrorOfTheStateMachineHasARemedy(t *testing.T) {
	handled := []string{statemachine.Throttled, statemachine.Unavailable}
	for _, match := range errorEquals.FindAllStringSubmatch(statemachine.Definition, -1) {
		if name := match[1]; name != "States.ALL" && name != "DynamoDB.ConditionalCheckFailedException" {
			handled = append(handled, name)
		}
	}
	handled = append(handled, Aborted, TimedOut)
	slices.Sort(handled)
	if known := slices.Sorted(maps.Keys(byError)); !slices.Equal(slices.Compact(handled), known) {
		t.Errorf("byError has %v, the state machine handles %v", known, slices.Compact(handled))
	}
}

// A step that is late is named as plans name it, or by its function.
func TestLateStepsExist(t *testing.T) {
	for step := range late {
		function, _, _ := strings.Cut(step, "/")
		if _, err := os.Stat("../../../functions/" + function); err != nil {
			t.Errorf("late has %s: %v", step, err)
		}
	}
	for step, want := range map[string]string{
		"nodegroups/capacity": noRoom, "nodegroups/retire": late["nodegroups"], "controller/crds": late["controller"],
	} {
		if got := remedy(Event{Step: step, Error: statemachine.StepDeadlineExceeded}, ""); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", step, got, want)
		}
	}
}

// Of a first node that does not come, EC2's own code decides, and a right is not looked for in the function's role. Nor is it where EKS
// could not do what it had accepted.
func TestTheRemedyForWhatOthersMayNot(t *testing.T) {
	refused := "cluster demo: change access mode: " + outcome.Unmade + ": update 1 ended as Failed: AccessDenied: no"
	if got := remedy(Event{Step: "access", Error: statemachine.StepFailed}, refused); !strings.Contains(got, "role of the cluster") {
		t.Errorf("%s: %q", refused, got)
	}
	for words, want := range map[string]string{
		"karpenter: InsufficientCapacityError: VcpuLimitExceeded: you have requested more": "quota of vCPUs",
		"kubelet: FailedCreatePodSandBox: failed to assign an IP address":                  "aws-node",
		"NodeClaim/a: Launched=Unknown Unauthorized User is not authorized":                "role of Karpenter's controller",
		"NodeClaim/a: Registered=Unknown NodeNotFound Node not registered with cluster":    "reaches the API server",
	} {
		reason := "pool workload has no first node yet: " + words + "; that took longer than 15m0s, and " + outcome.NotHandedOver
		if got := remedy(Event{Step: "proof", Error: statemachine.StepFailed}, reason); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", words, got, want)
		}
	}
}
