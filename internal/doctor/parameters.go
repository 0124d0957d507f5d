package doctor

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// turnsOn has the parameters that turn Karpenter on.
var turnsOn = map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}

// input returns the rack's parameters as a pass reads them. A rack with Karpenter off is examined as one that turns it on.
func (o *Observed) input() params.Input {
	input := params.Input{Rack: o.Rack, Params: o.Params, Secure: o.Secure}
	if o.on() {
		input.Previous, input.Removing = turnsOn, true
		return input
	}
	written := params.Parse(input).Config
	if written.Enabled || slices.ContainsFunc(slices.Collect(maps.Keys(turnsOn)), written.HasRefused) {
		return input
	}
	input.Params = maps.Clone(turnsOn)
	for name, text := range o.Params {
		if turnsOn[name] == "" {
			input.Params[name] = text
		}
	}
	return input
}

// Examined returns the settings for which the rack is examined: those of its parameters, with Karpenter on unless it is
// being turned off.
func (o *Observed) Examined() params.Config {
	config := params.Parse(o.input()).Config
	if !o.on() {
		config.AuthMode, config.Enabled = true, true // also if their values are refused
	}
	return config
}

// Records returns what the rack's records say about Karpenter, as far as the account and the cluster show it.
func (o *Observed) Records() plan.Records {
	if !o.on() {
		return plan.Records{}
	}
	records := plan.Records{
		Goal: plan.GoalKarpenter, WasOn: true, Params: turnsOn, Karpenter: plan.KarpenterRecord{Version: o.running()},
	}
	switch {
	case o.Unseen[Associations] != "":
	case o.Association:
		records.Credentials = "podidentity"
	default:
		records.Credentials = "irsa"
	}
	return records
}

// facts returns the facts of a pass. Facts that could not be read are unknown, and so is what the deployment allows.
func (o *Observed) facts() plan.Facts {
	facts := o.Facts
	facts.Records, facts.Deployment.Unknown = o.Records(), true
	facts.Offline = o.Unseen[TheCluster]+o.Unseen[Facts] != "" && !o.Missing
	if o.Unseen[CNI] == "" {
		facts.CNI = &o.CNI
	}
	if facts.Cluster != nil && (o.Unseen[Rules] != "" || o.on() && o.running() == "") {
		facts.Cluster = new(*facts.Cluster)
		facts.Cluster.Version = "" // whether Karpenter fits it cannot be told without the version of Karpenter that runs
	}
	return facts
}

// verdict is a problem or a warning of a pass.
type verdict struct {
	Severity
	params.Problem
}

// judge returns what a pass says. Without the tag of the cluster's owner it says nothing else, so judge also returns what
// it says once the cluster has the tag.
func (o *Observed) judge(facts plan.Facts) (all []verdict) {
	for _, required := range []bool{true, false} {
		facts.Deployment.RequireClusterTag = required
		result := validation.Validate(validation.Input{Parsed: params.Parse(o.input()), Facts: facts})
		for _, said := range []struct {
			severity Severity
			problems []params.Problem
		}{{Fails, result.Problems}, {Warns, result.Warnings}} {
			for _, p := range said.problems {
				if v := (verdict{said.severity, p}); !slices.Contains(all, v) {
					all = append(all, v)
				}
			}
		}
	}
	return all
}

// quoted matches the commands in the sentences of a pass.
var quoted = regexp.MustCompile("`((?:aws|sawhorse) [^`]+)`")

// commands returns the commands that the sentence names.
func (v verdict) commands() (all []string) {
	for _, match := range quoted.FindAllStringSubmatch(v.Message, -1) {
		all = append(all, match[1])
	}
	return all
}

func (v verdict) String() string { return v.Parameter + ": " + v.Message }

func parameters(o *Observed, found *findings) {
	if len(o.Params) == 0 {
		found.add(Info,
			fmt.Sprintf("rack %s has no parameters yet; it was examined with the defaults, as cluster %s", o.Rack, o.Config.ClusterName),
			"Create them.", "sawhorse register "+o.Rack)
	}
	for _, s := range ofPass {
		if o.Unseen[s] != "" && !(o.Missing && o.Unseen[s] == o.Unseen[TheCluster]) { // that there is no cluster, a pass says too
			found.unseen(o, s)
		}
	}
	for _, v := range o.judge(o.facts()) {
		do := "Do what it says; a pass refuses the rack until then, unless it is in force already. `sawhorse check` tells most of it before " +
			"the write."
		if v.Severity == Warns {
			do = "Decide whether that is meant; a pass goes on, and says it in the status."
		}
		found.add(v.Severity, v.String(), do, v.commands()...)
	}
}
