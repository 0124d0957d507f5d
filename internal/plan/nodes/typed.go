package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/robfig/cron/v3"
	"go.uber.org/multierr"
	"k8s.io/apimachinery/pkg/util/validation"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// typed calls Karpenter's own checks for each label, taint and requirement separately, so that a refusal can be
// attributed to one of them. It then checks for duplicate taints, durations and budgets. What does not fit Karpenter's
// types has been refused before. agreed means that Karpenter's check accepts the whole template, and so each of them.
func (d *draft) typed(agreed bool) []params.Problem {
	if d.kind != "NodePool" {
		return nil
	}
	var problems []params.Problem
	template, _ := d.object["spec"].(map[string]any)["template"].(map[string]any)
	ask := func(part map[string]any, newer func() bool, path ...string) {
		if err := runtimeValidate(part); err != nil && !newer() {
			from, _ := d.origin(append([]string{"spec", "template"}, path...))
			problems = append(problems, disliked(from, err))
		}
	}
	if !agreed {
		labels := inner(inner(template, "metadata"), "labels")
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			label := map[string]any{key: labels[key]}
			newer := func() bool { return d.newer(partLabels, label) }
			ask(map[string]any{"metadata": map[string]any{"labels": label}}, newer, "metadata", "labels", key)
		}
		for _, list := range []string{"taints", "startupTaints", "requirements"} {
			entries, _ := inner(template, "spec")[list].([]any)
			for i, entry := range entries {
				newer := func() bool { return list == "requirements" && d.newer(partRequirements, []any{entry}) }
				ask(map[string]any{"spec": map[string]any{list: []any{entry}}}, newer, "spec", list, strconv.Itoa(i))
			}
		}
	}
	// The API server checks these annotations only when a NodeClaim is created.
	annotations := inner(inner(template, "metadata"), "annotations")
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if wrong := validation.IsQualifiedName(strings.ToLower(key)); len(wrong) > 0 {
			from := d.blame([]string{"spec", "template", "metadata", "annotations", key})
			problems = append(problems, from.problem("is refused by Kubernetes for Karpenter's NodeClaim: %s; change it or leave it out", wrong[0]))
		}
	}
	return slices.Concat(problems, d.twice(inner(template, "spec")), d.durations(), d.budgets())
}

// unreadable checks that the manifest fits Karpenter's Go types. The CRD accepts integers that overflow them, and
// Karpenter then cannot read any object of the kind. agreed reports whether Karpenter's check accepts the template of a
// NodePool.
func (d *draft) unreadable() (problems []params.Problem, agreed bool) {
	var into any = &karpenter.NodePool{}
	if d.kind == "EC2NodeClass" {
		into = &ec2.EC2NodeClass{}
	}
	err := json.Unmarshal(canonical.JSON(d.readable()), into)
	if pool, is := into.(*karpenter.NodePool); is && err == nil {
		agreed = pool.RuntimeValidate(context.Background()) == nil
	}
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return nil, agreed
	}
	return []params.Problem{d.blame(d.route(wrong.Field)).problem("has a %s, which Karpenter cannot read as %s; change it or leave it out",
		wrong.Value, wrong.Type)}, false
}

// durations checks that Go can parse the durations. The CRD checks their characters only, and Karpenter cannot read a
// pool with an invalid one. An expiry of zero would delete every node at once.
func (d *draft) durations() []params.Problem {
	spec := inner(d.object, "spec")
	node, disruption := inner(inner(spec, "template"), "spec"), inner(spec, "disruption")
	type place struct {
		in   map[string]any
		path []string
	}
	places := []place{
		{node, []string{"spec", "template", "spec", "expireAfter"}},
		{node, []string{"spec", "template", "spec", "terminationGracePeriod"}},
		{disruption, []string{"spec", "disruption", "consolidateAfter"}},
	}
	budgets, _ := disruption["budgets"].([]any)
	for i, entry := range budgets {
		budget, _ := entry.(map[string]any)
		places = append(places, place{budget, []string{"spec", "disruption", "budgets", strconv.Itoa(i), "duration"}})
	}
	var problems []params.Problem
	for _, at := range places {
		name := at.path[len(at.path)-1]
		text, _ := at.in[name].(string)
		if text == "" || text == "Never" {
			continue
		}
		switch length, err := time.ParseDuration(text); {
		case err != nil:
			problems = append(problems, d.blame(at.path).problem("is %q, which is no duration that Karpenter can read; write, for example, %s",
				text, examples[name]))
		case name == "expireAfter" && length == 0:
			problems = append(problems, d.blame(at.path).problem("is %q, which would delete every node at once; write, for example, %s",
				text, examples[name]))
		}
	}
	return problems
}

// budgets checks what Karpenter parses when it is about to disrupt a node. If it cannot parse a budget it never
// disrupts a node, and only its log says so.
func (d *draft) budgets() []params.Problem {
	entries, _ := inner(inner(d.object, "spec"), "disruption")["budgets"].([]any)
	var problems []params.Problem
	for i, entry := range entries {
		budget, _ := entry.(map[string]any)
		from := func(name string) origin {
			return d.blame([]string{"spec", "disruption", "budgets", strconv.Itoa(i), name})
		}
		nodes, _ := budget["nodes"].(string)
		if _, err := strconv.ParseInt(nodes, 10, 32); errors.Is(err, strconv.ErrRange) {
			problems = append(problems, from("nodes").problem("is %q, which is more than Karpenter counts; write, for example, %s",
				nodes, examples["nodes"]))
		}
		text, _ := budget["schedule"].(string)
		if text == "" {
			continue
		}
		switch schedule, err := cron.ParseStandard("TZ=UTC " + text); { // as Karpenter does
		case err != nil:
			problems = append(problems, from("schedule").problem("is %q, which is no schedule that Karpenter can read: it would "+
				"never disrupt a node; write, for example, %s",
				text, examples["schedule"]))
		case schedule.Next(time.Unix(0, 0)).IsZero():
			problems = append(problems, from("schedule").problem("is %q, a time that never comes, which Karpenter takes for always; "+
				"write, for example, %s", text, examples["schedule"]))
		}
	}
	return problems
}

// twice checks all taints together: no two may have the same key and effect.
func (d *draft) twice(spec map[string]any) []params.Problem {
	taints, _ := spec["taints"].([]any)
	startup, _ := spec["startupTaints"].([]any)
	seen := map[string]bool{}
	var problems []params.Problem
	for i, entry := range slices.Concat(taints, startup) {
		taint, _ := entry.(map[string]any)
		what := fmt.Sprint(taint["key"], ":", taint["effect"])
		if seen[what] {
			path := []string{"spec", "template", "spec", "taints", strconv.Itoa(i)}
			if i >= len(taints) {
				path = []string{"spec", "template", "spec", "startupTaints", strconv.Itoa(i - len(taints))}
			}
			problems = append(problems, d.blame(path).problem("is refused by Karpenter: the taint %s is there twice; keep one of them", what))
		}
		seen[what] = true
	}
	return problems
}

// runtimeValidate runs Karpenter's own check of a NodePool's template, which Karpenter does before it uses the pool.
func runtimeValidate(template map[string]any) error {
	encoded, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		panic("nodes: template: " + err.Error()) // plain data always marshals
	}
	var pool karpenter.NodePool
	if json.Unmarshal(encoded, &pool) != nil {
		return nil
	}
	return pool.RuntimeValidate(context.Background())
}

func disliked(from origin, err error) params.Problem {
	var reasons []string
	for _, e := range multierr.Errors(err) {
		reasons = append(reasons, e.Error())
	}
	return from.problem("is refused by Karpenter: %s; change it or leave it out", strings.Join(reasons, "; "))
}
