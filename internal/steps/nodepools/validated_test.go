package nodepools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// accepted returns the accepted cases of package validation's tables, docs/recipes.md included: their manifests by the
// version of Karpenter and the description.
func accepted(t *testing.T) map[string]map[string][]object {
	t.Helper()
	files, err := filepath.Glob("../../validation/testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string][]object{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			What          string
			Config, Pools json.RawMessage
			Params        map[string]string
			Problems      []string
		}
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		good := 0
		for _, c := range cases {
			if len(c.Problems) > 0 || c.Params["karpenter_enabled"] == "false" {
				continue
			}
			texts := map[string]string{
				"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_config": string(c.Config),
				"additional_karpenter_nodepools_config": string(c.Pools),
			}
			maps.Copy(texts, c.Params)
			facts := plan.Facts{Offline: true, Deployment: plan.Deployment{Unknown: true}}
			result := validation.Validate(validation.Input{Parsed: params.Parse(params.Input{Rack: "demo", Params: texts}), Facts: facts})
			if len(result.Problems) > 0 || len(result.Plan.NodePools.Objects) == 0 {
				t.Fatalf("%s: %s: %v, %d objects", file, c.What, result.Problems, len(result.Plan.NodePools.Objects))
			}
			version := result.Plan.Controller.CRDs.Version
			if all[version] == nil {
				all[version] = map[string][]object{}
			}
			all[version][filepath.Base(file)+": "+c.What] = result.Plan.NodePools.Manifests()
			good++
		}
		if good == 0 {
			t.Errorf("%s has no accepted case", file)
		}
	}
	return all
}

// The API server takes accepted objects as they are: it refuses nothing, drops nothing, and finds nothing to change the
// next time. It has the CRDs of the version that the objects are for. With -short, these are every fourth of the default version.
func TestWhatIsAcceptedApplies(t *testing.T) {
	s := begin(t)
	all, installed := accepted(t), karpenter.Default().Version
	s.applyAll(all[installed])
	if testing.Short() {
		return
	}
	for _, version := range slices.SortedFunc(maps.Keys(all), karpenter.Compare) {
		if version != installed {
			s.crds(version, slices.Concat(slices.Collect(maps.Values(all[version]))...))
			s.applyAll(all[version])
		}
	}
	for _, objects := range all[installed] { // other tests of the package use the same API server
		s.crds(installed, objects)
		break
	}
}

// crds installs the CRDs of a version over those of another, and waits until the API server accepts objects that are for
// that version.
func (s *scene) crds(version string, objects []object) {
	s.Helper()
	release, err := karpenter.Find(version)
	if err != nil {
		s.Fatal(err)
	}
	crds, err := release.CRDs()
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range objects {
		s.ReplaceCRDs(crds, o)
		crds = nil // the next one only has to be accepted
	}
}

// applyAll applies the objects of each case and removes them again. Many cases have the same ones, which are applied once.
func (s *scene) applyAll(cases map[string][]object) {
	t := s.T
	applied := map[string]bool{}
	for i, what := range slices.Sorted(maps.Keys(cases)) {
		objects := cases[what]
		text, err := json.Marshal(objects)
		if err != nil {
			t.Fatal(err)
		}
		if applied[string(text)] || testing.Short() && i%4 != 0 {
			continue
		}
		applied[string(text)] = true
		s.plan.NodePools.Objects = objects
		var created []string
		for _, o := range objects {
			created = append(created, fmt.Sprintf("created %s/%s", o["kind"], o["metadata"].(object)["name"]))
		}
		s.Log(what)
		progress, err := s.step.Run(context.Background(), s.plan, "")
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var changed []string
		for _, c := range progress.Changes {
			changed = append(changed, c.Action+" "+c.Subject)
		}
		if !slices.Equal(changed, created) {
			t.Errorf("%s: changed %q, want %q", what, changed, created)
		}
		s.ready(objects...)
		var versions []string
		for _, o := range objects {
			live := s.Get(o)
			versions = append(versions, live.GetResourceVersion())
			kept(t, what+": "+live.GetKind()+"/"+live.GetName()+": spec", o["spec"], live.Object["spec"])
		}
		s.done()
		for i, o := range objects {
			if now := s.Get(o).GetResourceVersion(); now != versions[i] {
				t.Errorf("%s: %s: resourceVersion was %s and is %s", what, created[i], versions[i], now)
			}
			s.Remove(o)
		}
	}
}

// kept checks that got contains all of want. got may have further fields: the API server's defaults.
func kept(t *testing.T, at string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is %v, want %v", at, got, want)
		}
		for key := range w {
			kept(t, at+"."+key, w[key], g[key])
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			t.Errorf("%s is %v, want %v", at, got, want)
			return
		}
		for i := range w {
			kept(t, fmt.Sprintf("%s[%d]", at, i), w[i], g[i])
		}
	default:
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", at, got, want)
		}
	}
}
