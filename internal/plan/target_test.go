package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// running returns the facts of a rack that runs a version of Karpenter.
func running(version string) plan.Facts {
	f := facts()
	f.Records = plan.Records{
		ClusterLock: "demo", Goal: plan.GoalKarpenter, WasOn: true, Credentials: "podidentity",
		Karpenter: plan.KarpenterRecord{Version: version, Planned: version, CRDs: version},
	}
	return f
}

// choosing returns the parameters of a rack with Karpenter that name a version.
func choosing(version string) map[string]string { return with(on, "karpenter_version", version) }

func TestTarget(t *testing.T) {
	failed := &plan.RolledBack{Version: "1.14.3", Reason: "its pods did not start.", Write: 7}
	rolledBack := running("1.12.1")
	rolledBack.Records.Karpenter.RolledBack = failed
	again, forced, first := rolledBack, rolledBack, rolledBack
	rolledBack.Writes = map[string]int64{"karpenter_version": 7}
	again.Writes = map[string]int64{"karpenter_version": 8}
	forced.Writes, forced.Force = rolledBack.Writes, events.Force{events.ForceVersion}
	first.Writes, first.Records.Karpenter.Version = rolledBack.Writes, "" // nothing came back
	starting, removed, unknown := running(""), running("1.14.3"), running("1.9.0")
	starting.Records.Karpenter = plan.KarpenterRecord{Planned: "1.12.1"}
	removed.Records.WasOn, removed.Records.Goal = false, plan.GoalAccess
	off := func(texts map[string]string) map[string]string { return with(texts, "karpenter_enabled", "false") }
	for _, c := range []struct {
		what             string
		params           map[string]string
		facts            plan.Facts
		target, previous string
		warning, problem string
	}{
		{what: "a new rack", params: on, facts: facts(), target: "1.10.0"},
		{what: "a new rack that chooses", params: choosing("1.14.3"), facts: facts(), target: "1.14.3"},
		{what: "what runs stays", params: on, facts: running("1.12.1"), target: "1.12.1"},
		{what: "what runs is named", params: choosing("1.12.1"), facts: running("1.12.1"), target: "1.12.1"},
		{what: "up", params: choosing("1.15.1"), facts: running("1.10.0"), target: "1.15.1", previous: "1.10.0"},
		{what: "down", params: choosing("1.10.0"), facts: running("1.15.1"), target: "1.10.0", previous: "1.15.1"},
		{what: "what is being installed stays", params: on, facts: starting, target: "1.12.1"},
		{what: "another choice before the first is Ready", params: choosing("1.10.0"), facts: starting, target: "1.10.0"},
		{what: "removed before, on again", params: on, facts: removed, target: "1.10.0"},
		{what: "a removal changes no version", params: off(choosing("1.14.3")), facts: running("1.10.0"), target: "1.10.0"},
		{what: "it failed", params: choosing("1.14.3"), facts: rolledBack, target: "1.12.1",
			warning: "karpenter_version is 1.14.3, but Karpenter 1.14.3 failed here (its pods did not start), so 1.12.1 came back and stays " +
				"in force; write karpenter_version again, or send a request with \"force\": [\"version\"], to try 1.14.3 once more"},
		{what: "it failed and was written again", params: choosing("1.14.3"), facts: again, target: "1.14.3", previous: "1.12.1"},
		{what: "it failed and is forced", params: choosing("1.14.3"), facts: forced, target: "1.14.3", previous: "1.12.1"},
		{what: "it failed, and another is chosen", params: choosing("1.15.1"), facts: rolledBack, target: "1.15.1", previous: "1.12.1"},
		{what: "it failed, and the parameter is gone", params: on, facts: rolledBack, target: "1.12.1"},
		{what: "it failed where nothing ran", params: choosing("1.14.3"), facts: first, target: "1.14.3"},
		{what: "this Sawhorse does not have what runs", params: on, facts: unknown, target: "1.10.0",
			problem: "the rack has Karpenter 1.9.0 or its CRDs, which this version of Sawhorse does not have"},
		{what: "and it is removed", params: off(on), facts: unknown, target: "1.10.0", warning: "the rack has Karpenter 1.9.0"},
	} {
		got := build(t, c.params, c.facts)
		release, previous := got.Plan.Controller.Release, ""
		if p := got.Plan.Controller.Previous; p != nil {
			previous = p.Version
			if tag := image(p)["tag"]; tag != p.Version || !p.Present {
				t.Errorf("%s: the previous release has the tag %v and is present: %v", c.what, tag, p.Present)
			}
		}
		if c.problem == "" && (release.Version != c.target || previous != c.previous || image(&release)["tag"] != c.target) {
			t.Errorf("%s: target %s, previous %q, want %s and %q", c.what, release.Version, previous, c.target, c.previous)
		}
		if told := about(got.Problems, "karpenter_version"); !strings.HasPrefix(told, c.problem) || (told == "") != (c.problem == "") {
			t.Errorf("%s: problems %v, want %q", c.what, got.Problems, c.problem)
		}
		if told := about(got.Warnings, "karpenter_version"); !strings.HasPrefix(told, c.warning) || (told == "") != (c.warning == "") {
			t.Errorf("%s: warnings %v, want %q", c.what, got.Warnings, c.warning)
		}
	}
}

func image(r *plan.Release) map[string]any {
	return r.Values["controller"].(map[string]any)["image"].(map[string]any)
}

// What a controller needs comes before it, and its pools after it; an older version has the reverse order. A freeze comes
// before both.
func TestOrderOfAChangeOfVersion(t *testing.T) {
	newer := []string{"infrastructure", "queue", "controller/crds", "controller/release", "nodepools"}
	older := []string{"controller/crds", "nodepools", "controller/release", "queue", "infrastructure"}
	frozen := func(order []string) []string { return append([]string{plan.FreezeStep}, order...) }
	for _, c := range []struct {
		version, freeze string
		facts           plan.Facts
		want            []string
	}{
		{"1.15.1", "false", running("1.10.0"), newer},
		{"1.15.1", "true", running("1.10.0"), frozen(newer)},
		{"1.10.0", "false", running("1.10.0"), newer},
		{"1.10.0", "true", running("1.10.0"), frozen(newer)},
		{"1.10.0", "true", facts(), frozen(newer)},
		{"1.10.0", "true", running("1.15.1"), frozen(older)},
	} {
		var got []string
		for _, step := range build(t, with(choosing(c.version), "karpenter_freeze", c.freeze), c.facts).Plan.Steps {
			if step.Name == plan.FreezeStep || slices.Contains(c.want, step.Name) {
				got = append(got, step.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("to %s, freeze %s: %q, want %q", c.version, c.freeze, got, c.want)
		}
	}
}

// Stored objects may need the newest CRDs that the cluster has had.
func TestCRDsNeverGoBack(t *testing.T) {
	newer, unknown := running("1.12.1"), running("1.12.1")
	newer.Records.Karpenter.CRDs, unknown.Records.Karpenter.CRDs = "1.14.3", "1.99.0"
	for _, c := range []struct {
		version string
		facts   plan.Facts
		want    string
	}{
		{"1.10.0", running("1.15.1"), "1.15.1"}, {"1.12.1", newer, "1.14.3"},
		{"1.15.1", newer, "1.15.1"}, {"1.12.1", running("1.10.0"), "1.12.1"},
	} {
		if got := build(t, choosing(c.version), c.facts).Plan.Controller.CRDs.Version; got != c.want {
			t.Errorf("to %s: CRDs %s, want %s", c.version, got, c.want)
		}
	}
	told := about(build(t, choosing("1.12.1"), unknown).Problems, "karpenter_version")
	if !strings.Contains(told, "deploy a version of Sawhorse that has 1.99.0") {
		t.Errorf("CRDs that this Sawhorse does not have: %q", told)
	}
}

func TestKubernetesVersionsThatAreNotListed(t *testing.T) {
	cluster := func(f plan.Facts, version string) plan.Facts {
		c := *f.Cluster
		c.Version, f.Cluster = version, &c
		return f
	}
	for _, c := range []struct {
		what                        string
		params                      map[string]string
		facts                       plan.Facts
		parameter, problem, warning string
	}{
		{what: "a new rack", params: on, facts: cluster(facts(), "1.36"), parameter: "cluster_name",
			problem: "Karpenter 1.10.0 lists 1.26 to 1.35, and is not installed on others; write karpenter_version 1.14.3, which lists it"},
		{what: "a new rack that chooses", params: choosing("1.12.1"), facts: cluster(facts(), "1.36"), parameter: "karpenter_version",
			problem: "Karpenter 1.12.1 lists 1.26 to 1.35, and is not installed on others; write karpenter_version 1.14.3, which lists it"},
		{what: "a good choice", params: choosing("1.14.3"), facts: cluster(facts(), "1.36"), parameter: "karpenter_version"},
		{what: "access alone", params: with(on, "karpenter_enabled", "false"), facts: cluster(facts(), "1.36"), parameter: "cluster_name"},
		{what: "the cluster was upgraded", params: on, facts: cluster(running("1.10.0"), "1.36"), parameter: "cluster_name",
			warning: "cluster demo runs Kubernetes 1.36; Karpenter 1.10.0 lists 1.26 to 1.35, and may not work with others; " +
				"write karpenter_version 1.14.3, which lists it"},
		{what: "a change", params: choosing("1.12.1"), facts: cluster(running("1.10.0"), "1.36"), parameter: "karpenter_version",
			problem: "Karpenter 1.12.1 lists 1.26 to 1.35, and is not installed on others"},
		{what: "the change that helps", params: choosing("1.15.1"), facts: cluster(running("1.10.0"), "1.36"), parameter: "karpenter_version"},
		{what: "nothing helps", params: on, facts: cluster(facts(), "1.25"), parameter: "cluster_name",
			problem: "and is not installed on others; no version that Sawhorse has lists it; use a cluster with a version that is listed"},
	} {
		got := build(t, c.params, c.facts)
		problem, warning := about(got.Problems, c.parameter), about(got.Warnings, c.parameter)
		if !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") {
			t.Errorf("%s: problems %v, want %q", c.what, got.Problems, c.problem)
		}
		if !strings.Contains(warning, c.warning) || (warning == "") != (c.warning == "") {
			t.Errorf("%s: warnings %v, want %q", c.what, got.Warnings, c.warning)
		}
	}
}

// An accepted plan records which version it is for.
func TestAccept(t *testing.T) {
	for _, c := range []struct {
		what    string
		records plan.Records
		want    plan.KarpenterRecord
	}{
		{"a new rack", plan.Records{}, plan.KarpenterRecord{Planned: "1.12.1"}},
		{"its first version is not Ready yet", plan.Records{WasOn: true, Karpenter: plan.KarpenterRecord{Planned: "1.10.0"}},
			plan.KarpenterRecord{Planned: "1.12.1"}},
		{"an upgrade", plan.Records{WasOn: true, Karpenter: plan.KarpenterRecord{Version: "1.10.0", Planned: "1.10.0", CRDs: "1.12.1"}},
			plan.KarpenterRecord{Version: "1.10.0", Planned: "1.12.1", CRDs: "1.12.1"}},
		{"on again", plan.Records{Karpenter: plan.KarpenterRecord{Version: "1.15.1", Planned: "1.15.1", CRDs: "1.15.1"}},
			plan.KarpenterRecord{Planned: "1.12.1", CRDs: "1.15.1"}},
	} {
		if got := c.records.Accept("1.12.1"); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

// Only the version that failed is taken back, and not if it was written again since: then it is tried again.
func TestTakeBack(t *testing.T) {
	changing := running("1.12.1")
	changing.Writes = map[string]int64{"karpenter_version": 7}
	for _, c := range []struct {
		what   string
		facts  plan.Facts
		failed *plan.RolledBack
		want   string
	}{
		{"nothing has failed", changing, nil, "1.14.3"},
		{"the version that failed", changing, &plan.RolledBack{Version: "1.14.3", Write: 7}, "1.12.1"},
		{"it was written again since", changing, &plan.RolledBack{Version: "1.14.3", Write: 6}, "1.14.3"},
		{"another version failed", changing, &plan.RolledBack{Version: "1.15.1", Write: 7}, "1.14.3"},
		{"no change is under way", running("1.14.3"), &plan.RolledBack{Version: "1.14.3"}, "1.14.3"},
	} {
		p := build(t, choosing("1.14.3"), c.facts).Plan
		taken := p.TakeBack(c.failed)
		if got := p.Controller.Release.Version; got != c.want || taken != (c.want == "1.12.1") {
			t.Errorf("%s: %s, taken back %v, want %s", c.what, got, taken, c.want)
		}
	}
}

// about returns the messages about a parameter.
func about(problems []params.Problem, parameter string) string {
	var all []string
	for _, p := range problems {
		if p.Parameter == parameter {
			all = append(all, p.Message)
		}
	}
	return strings.Join(all, "\n")
}

// An event with force is used up by the version that failed after it, until a new lease begins to count again.
func TestForceIsUsedOnce(t *testing.T) {
	for _, c := range []struct {
		failed       *plan.RolledBack
		forceAt, now int64
		want         bool
	}{
		{nil, 3, 4, false},
		{&plan.RolledBack{Generation: 4}, 3, 4, true},
		{&plan.RolledBack{Generation: 4}, 4, 6, true},
		{&plan.RolledBack{Generation: 4}, 5, 6, false},
		{&plan.RolledBack{Generation: 50}, 1, 1, false},
		{&plan.RolledBack{}, 1, 1, false}, // of a version that recorded no generation
	} {
		if got := c.failed.Used(c.forceAt, c.now); got != c.want {
			t.Errorf("%+v, force at %d, now %d: %v", c.failed, c.forceAt, c.now, got)
		}
	}
}
