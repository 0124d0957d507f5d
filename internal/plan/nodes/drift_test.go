package nodes

import (
	"context"
	"encoding/json"
	"testing"

	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// A change is reverted while nodes are being replaced: nodes from before the change stay, the others are replaced
// again.
func TestAChangeIsTakenBack(t *testing.T) {
	back := change{was: decoded{good: true, poolHash: "changed"}, is: decoded{good: true, poolHash: "original"}}
	for hash, want := range map[string]certainty{"changed": replaced, "original": stays} {
		claim := &karpenter.NodeClaim{}
		claim.Annotations = map[string]string{
			karpenter.NodePoolHashAnnotationKey: hash, karpenter.NodePoolHashVersionAnnotationKey: karpenter.NodePoolHashVersion,
		}
		if got := back.drifts(claim)[nodePoolDrifted]; got != want {
			t.Errorf("a node of the %s pool: %d, want %d", hash, got, want)
		}
	}
}

// FuzzRequirements compares the result for unknown NodeClaims with Karpenter's decision about one NodeClaim. If all
// nodes are said to stay or to be replaced, a node that met the former requirements must do so too.
func FuzzRequirements(f *testing.F) {
	const zone = "topology.kubernetes.io/zone"
	for _, operators := range [][2]string{
		{"In", "In"}, {"In", "NotIn"}, {"NotIn", "NotIn"}, {"NotIn", "Exists"}, {"Exists", "In"},
		{"In", "DoesNotExist"}, {"DoesNotExist", "In"}, {"DoesNotExist", "NotIn"}, {"NotIn", "DoesNotExist"},
	} {
		for _, key := range []string{zone, ""} { // a node with the label, and one without
			f.Add(`[{"key":"`+zone+`","operator":"`+operators[0]+`","values":["a","b"]}]`,
				`[{"key":"`+zone+`","operator":"`+operators[1]+`","values":["a"]}]`, key, "b")
		}
	}
	for _, bounds := range [][2]string{{"Gt", "Gt"}, {"Lt", "Gt"}, {"Gte", "Lte"}, {"Gt", "In"}, {"In", "Lt"}} {
		f.Add(`[{"key":"x","operator":"`+bounds[0]+`","values":["3"]},{"key":"y","operator":"NotIn","values":["z"]}]`,
			`[{"key":"x","operator":"`+bounds[1]+`","values":["4"]},{"key":"x","operator":"NotIn","values":["5"]}]`, "x", "4")
	}
	f.Fuzz(func(t *testing.T, was, is, key, value string) {
		read := func(text string) (d decoded, good bool) {
			if json.Unmarshal([]byte(text), &d.pool.Spec.Template.Spec.Requirements) != nil {
				return d, false
			}
			return d, d.pool.RuntimeValidate(context.Background()) == nil
		}
		old, oldGood := read(was)
		new, newGood := read(is)
		if !oldGood || !newGood {
			return
		}
		change := change{was: old, is: new}
		every := change.requirements(nil)
		claim := &karpenter.NodeClaim{}
		if key != "" {
			claim.Labels = map[string]string{key: value}
		}
		former := scheduling.NewNodeSelectorRequirementsWithMinValues(old.pool.Spec.Template.Spec.Requirements...)
		if scheduling.NewLabelRequirements(claim.Labels).Compatible(former) != nil {
			return // not a node of the pool
		}
		if one := change.requirements(claim); every != may && one != every {
			t.Errorf("from %s to %s: any node %d, the node %s=%s %d", was, is, every, key, value, one)
		}
	})
}
