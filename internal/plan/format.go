package plan

import (
	"encoding/json"
	"fmt"
)

// Read decodes a stored plan. A plan of an earlier format is converted: what that format did not have is rendered from
// what it had. The result is nil for a format that this version does not know.
func Read(text []byte) (*Plan, error) {
	var stored struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, fmt.Errorf("plan: decode: %w", err)
	}
	p := &Plan{}
	var into any = p
	switch stored.Format {
	case Format:
	case 1:
		into = &format1{Plan: p}
	default:
		return nil, nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, fmt.Errorf("plan: decode format %d: %w", stored.Format, err)
	}
	if old, ok := into.(*format1); ok {
		old.convert()
	}
	return p, nil
}

// format1 is the format in which the steps rendered policies, values, manifests and arguments themselves. Its fields
// take the place of the plan's fields of the same name.
type format1 struct {
	*Plan
	Infrastructure identity   `json:"infrastructure"`
	Queue          queueNames `json:"queue"`
	Controller     charts     `json:"controller"`
	Autoscaler     struct {
		Autoscaler
		Groups []AutoscaledGroup `json:"groups"`
	} `json:"autoscaler"`
}

// convert completes the plan as this version's Build would have made it from the same facts.
func (old *format1) convert() {
	p := old.Plan
	p.Format = Format
	p.Queue = queueOf(p.Rack, p.Cluster, old.Queue)
	p.Infrastructure = current.infrastructure(p.Cluster, old.Infrastructure, p.Queue.ARN)
	if !p.Cluster.Gone {
		p.Controller = current.controller(p.Rack, p.Cluster.Name, old.Controller)
	}
	p.Autoscaler = old.Autoscaler.Autoscaler
	p.Autoscaler.Args = Args(old.Autoscaler.Groups)
	for i, s := range p.Steps {
		if r, ok := rowOf(s.Name); ok {
			p.Steps[i].Fingerprint = fingerprint(r.section(p))
		}
	}
}
