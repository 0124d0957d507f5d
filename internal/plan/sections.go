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

func labelsSection(p *Plan) any {
	return struct {
		System []string `json:"system,omitempty"`
	}{p.Nodegroups.System}
}

func replacedSection(p *Plan) any {
	return struct {
		Replaced []Replacement `json:"replaced,omitempty"`
	}{p.Nodegroups.Replaced}
}

// buildSection includes the size that build groups return to only if they return. It has no effect while they stay
// empty.
func buildSection(p *Plan) any {
	section := struct {
		Build      []string `json:"build,omitempty"`
		BuildEmpty bool     `json:"buildEmpty"`
		BuildMin   *int     `json:"buildMin,omitempty"`
	}{Build: p.Nodegroups.Build, BuildEmpty: p.Nodegroups.BuildEmpty}
	if !p.Nodegroups.BuildEmpty {
		section.BuildMin = p.Nodegroups.BuildMin
	}
	return section
}

func placementSection(p *Plan) any {
	return struct {
		Pinned []string `json:"pinned,omitempty"`
	}{p.Nodegroups.Pinned}
}

func nodePoolsSection(p *Plan) any {
	if len(p.NodePools.Objects) == 0 {
		return p.NodePools
	}
	return map[string]any{"objects": p.NodePools.Objects} // its JSON is that of p.NodePools
}
