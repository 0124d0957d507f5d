package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
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
	p.complete()
	return p, nil
}

// complete adds the fields that earlier versions of Sawhorse left out of a plan of this format. The fingerprints stay, so
// that the steps concerned are due with the next plan.
func (p *Plan) complete() {
	if p.Access.Mode != "" && p.Access.Rights == nil {
		p.Access.Rights = rights
	}
	if crds := &p.Controller.CRDs; crds.Present && crds.Definitions == nil {
		if release, err := catalogue.Find(crds.Version); err == nil {
			crds.Definitions = release.CRDNames
		}
	}
}

// format1 is the format in which the steps rendered policies, values, manifests and arguments themselves. Its fields
// replace the plan's fields of the same name.
type format1 struct {
	*Plan
	Steps          []step1    `json:"steps"`
	Infrastructure identity   `json:"infrastructure"`
	Queue          queueNames `json:"queue"`
	Controller     struct {
		charts
		DevicePlugin bool `json:"devicePlugin"`
	} `json:"controller"`
	Autoscaler struct {
		Autoscaler
		Groups []AutoscaledGroup `json:"groups"`
	} `json:"autoscaler"`
}

// convert completes the plan as this version's Build would have made it from the same facts.
func (old *format1) convert() {
	p := old.Plan
	p.Format = Format
	recorded, err := catalogue.Find(unrecorded)
	if err != nil {
		panic(err) // a test has it
	}
	k := carried(recorded)
	p.complete()
	p.Queue = k.queue(p.Rack, p.Cluster, old.Queue)
	p.Infrastructure = k.infrastructure(p.Cluster, old.Infrastructure, p.Queue.ARN)
	if !p.Cluster.Gone {
		p.Controller = Controller{CRDs: k.crds(), Release: k.controller(p.Rack, p.Cluster.Name, old.Controller.charts)}
		if old.Controller.DevicePlugin {
			p.Controller.DevicePlugin = devicePlugin(p.Rack)
		}
	}
	p.Autoscaler = old.Autoscaler.Autoscaler
	p.Autoscaler.Args = Args(old.Autoscaler.Groups)
	for _, s := range old.Steps {
		step := s.Step.Current()
		step.PrecheckFor = s.Guards
		p.Steps = append(p.Steps, step)
	}
	p.SetFingerprints()
	// That format installed the CRDs before it changed anything else.
	crds := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == "controller/crds" })
	release := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == "controller/release" })
	if p.Goal == GoalKarpenter && crds >= 0 && crds < release {
		moved := p.Steps[crds]
		p.Steps = slices.Insert(slices.Delete(p.Steps, crds, crds+1), release-1, moved)
	}
}

// step1 is a step of a plan in format 1.
type step1 struct {
	Step
	Guards string `json:"guards"`
}

// renamed maps the former names of steps to those of this version.
var renamed = map[string]string{
	"access/vacant":   "access/conflicts",
	"nodegroups/pins": "nodegroups/placement",
	"nodegroups/room": "nodegroups/capacity",
}

// Current returns a step with the name and the part of this version. While a pass of an earlier version goes on, the
// state machine calls the steps by the names that they had.
func (s Step) Current() Step {
	if name, is := renamed[s.Name]; is {
		s.Name = name
		s.Function, s.Part, _ = strings.Cut(name, "/")
	}
	return s
}
