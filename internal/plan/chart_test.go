package plan_test

import (
	"fmt"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// With IRSA the service account names the role. With Pod Identity EKS does.
func TestIRSAAnnotatesTheServiceAccount(t *testing.T) {
	account := func(name string) string {
		return fmt.Sprint(outcome(t, name).Plan.Controller.Release.Values["serviceAccount"])
	}
	const role = "arn:aws:iam::123456789012:role/sawhorse/demo-karpenter"
	if got := account("enable-irsa"); got != "map[annotations:map[eks.amazonaws.com/role-arn:"+role+"] name:karpenter]" {
		t.Errorf("IRSA: %s", got)
	}
	if got := account("enable"); got != "map[name:karpenter]" {
		t.Errorf("Pod Identity: %s", got)
	}
}

func TestReplicasFollowHighAvailability(t *testing.T) {
	for value, want := range map[string]int{"true": 2, "false": 1} {
		if got := build(t, with(on, "high_availability", value), facts()).Plan.Controller.Release.Replicas; got != want {
			t.Errorf("high_availability=%s: %d", value, got)
		}
	}
}

// While Karpenter is being removed, its controller may have to be restored. So the release is complete, with the values
// of the time when Karpenter was on.
func TestTheReleaseIsCompleteWhenKarpenterIsTurnedOff(t *testing.T) {
	f := facts()
	f.Records = plan.Records{ClusterLock: "demo", Goal: plan.GoalKarpenter, WasOn: true, Credentials: "podidentity"}
	before, after := build(t, on, f).Plan.Controller, build(t, with(on, "karpenter_enabled", "false"), f).Plan.Controller
	if !before.Release.Present || after.Release.Present || !after.CRDs.Present {
		t.Errorf("before %+v, after %+v", before, after)
	}
	after.Release.Present = true
	if got, want := text(t, after.Release), text(t, before.Release); string(got) != string(want) {
		t.Errorf("after %s\nbefore %s", got, want)
	}
}
