package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// OutputBaseline is the output of a rack that says what the cluster's node groups ran before Karpenter.
const OutputBaseline = "baseline_nodes"

// Bought are nodes of one instance type. The type is empty if it is not known.
type Bought struct {
	InstanceType string
	Spot         bool
	Nodes        int
}

// BaselineNodes returns the output for what the node groups run, such as "c6i.large/spot=2,m5.large=3". It has no names of groups,
// so that it stays short: SSM holds 4 KB. A group of several types counts as nodes of the first one.
func (f Facts) BaselineNodes() string {
	nodes := map[string]int{}
	for _, g := range f.Present() {
		kind := strings.Join(g.InstanceTypes[:min(1, len(g.InstanceTypes))], "")
		if g.CapacityType == "SPOT" {
			kind += onSpot
		}
		nodes[kind] += g.Scaling.Desired
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(nodes)) {
		if nodes[kind] > 0 {
			all = append(all, fmt.Sprintf("%s=%d", kind, nodes[kind]))
		}
	}
	return strings.Join(all, ",")
}

const onSpot = "/spot"

// ParseBaseline reads what BaselineNodes returned.
func ParseBaseline(text string) (all []Bought, err error) {
	for kind := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		name, number, _ := strings.Cut(kind, "=")
		nodes, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("%s: number of nodes in %q: %w", OutputBaseline, kind, err)
		}
		instanceType, spot := strings.CutSuffix(name, onSpot)
		all = append(all, Bought{InstanceType: instanceType, Spot: spot, Nodes: nodes})
	}
	return all, nil
}
