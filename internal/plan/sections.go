package plan

// These functions return the sections that are not simply a field of the plan.

func accessSection(p *Plan) any {
	return struct {
		Access
		Cluster Cluster `json:"cluster"`
	}{p.Access, p.Cluster}
}

func networkSection(p *Plan) any {
	return struct {
		Network
		Cluster string `json:"cluster"`
	}{p.Network, p.Cluster.Name}
}

// optional returns a section of one field, which is left out if it is empty.
func optional[T any](name string, list []T) map[string]any {
	if len(list) == 0 {
		return map[string]any{}
	}
	return map[string]any{name: list}
}

func replacedSection(p *Plan) any { return optional("replaced", p.Nodegroups.Replaced) }

func nodePoolsSection(p *Plan) any {
	section := optional("objects", p.NodePools.Manifests())
	if after := p.NodePools.RotateAfter; after != "" {
		section["rotateAfter"] = after
	}
	return section
}

func freezeSection(p *Plan) any {
	return struct {
		Frozen bool `json:"frozen"`
	}{p.NodePools.Frozen}
}

// migrationSection includes the freeze, which stops the migration, and whether the groups get their sizes back.
func migrationSection(p *Plan) any {
	return struct {
		Migration
		Frozen bool `json:"frozen,omitempty"`
		Back   bool `json:"back,omitempty"`
	}{p.Nodegroups.Migration, p.NodePools.Frozen, p.Goal != GoalKarpenter}
}

// buildSection includes the size that build groups return to only if they return: it has no effect while they stay
// empty. It includes whether Karpenter is off, because the nodes that were cordoned for it then return.
func buildSection(p *Plan) any {
	section := struct {
		Build      []string `json:"build,omitempty"`
		BuildEmpty bool     `json:"buildEmpty"`
		BuildMin   *int     `json:"buildMin,omitempty"`
		Back       bool     `json:"back,omitempty"`
	}{Build: p.Nodegroups.Build, BuildEmpty: p.Nodegroups.BuildEmpty, Back: p.Goal != GoalKarpenter}
	if !p.Nodegroups.BuildEmpty {
		section.BuildMin = p.Nodegroups.BuildMin
	}
	return section
}
