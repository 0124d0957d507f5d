// Package charts renders Karpenter's chart into the objects of a plan, with Helm's engine. The same plan and Facts give the
// same objects. It is apart from package plan because Helm is a large dependency.
package charts

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// oldest is what templates are told where the cluster's version is not known: the oldest Kubernetes that Karpenter 1.10 lists.
const oldest = "1.26"

// Add adds to a plan the objects of the controller's release, and of the one before it, if the plan has a step for them. The
// error says why the chart refuses its values.
func Add(p *plan.Plan, facts plan.Facts) error {
	if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Name == "controller/release" }) {
		return nil
	}
	releases := []*plan.Release{&p.Controller.Release}
	if previous := p.Controller.Previous; previous != nil {
		releases = append(releases, previous)
	}
	capabilities := capabilitiesOf(facts)
	for _, release := range releases {
		var err error
		if release.Objects, err = render(*release, capabilities); err != nil {
			return err
		}
	}
	return nil
}

// capabilitiesOf returns what the templates are told about the cluster: its version, and of its APIs those that a template of
// some version asks for.
func capabilitiesOf(facts plan.Facts) *common.Capabilities {
	kubernetes := oldest
	if facts.Cluster != nil && facts.Cluster.Version != "" {
		kubernetes = facts.Cluster.Version
	}
	version, err := common.ParseKubeVersion("v" + kubernetes + ".0")
	if err != nil { // on the command line it may be any text
		version = &common.KubeVersion{Version: "v" + oldest + ".0", Major: "1", Minor: oldest[2:]}
	}
	return &common.Capabilities{KubeVersion: *version, APIVersions: append(common.VersionSet{"v1", "policy/v1"}, facts.APIs...)}
}

// render returns the objects that a release's chart makes from its values, in the order in which they are applied.
func render(release plan.Release, capabilities *common.Capabilities) ([]plan.Object, error) {
	loaded, err := load(release)
	if err != nil {
		return nil, err
	}
	values := maps.Clone(release.Values)
	values["replicas"] = release.Replicas
	input, err := util.ToRenderValues(loaded, values, common.ReleaseOptions{Name: release.Name, Namespace: ownership.Namespace}, capabilities)
	if err != nil {
		return nil, fmt.Errorf("chart %s %s: values: %w", release.Name, release.Version, err)
	}
	// The charts write it into the label app.kubernetes.io/managed-by.
	input["Release"].(map[string]any)["Service"] = ownership.ManagedBy
	files, err := engine.Render(loaded, input)
	if err != nil {
		return nil, fmt.Errorf("chart %s %s: %w", release.Name, release.Version, err)
	}
	var objects []plan.Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" {
			continue // helpers and notes
		}
		objects, err = appendDocuments(objects, files[name])
		if err != nil {
			return nil, fmt.Errorf("chart %s %s: %s: %w", release.Name, release.Version, path.Base(name), err)
		}
	}
	slices.SortStableFunc(objects, func(a, b plan.Object) int { return cmp.Compare(rank(a), rank(b)) })
	return objects, nil
}

// appendDocuments appends the objects of a file of YAML documents. Some are empty: templates make objects on a condition.
func appendDocuments(objects []plan.Object, file string) ([]plan.Object, error) {
	for text := range strings.SplitSeq("\n"+file, "\n---\n") {
		var object plan.Object
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			return nil, err
		}
		if len(object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// rank orders objects: pods find their account, its rights and the Service when they start.
func rank(object plan.Object) int {
	return slices.Index([]string{
		"ServiceMonitor", "PodDisruptionBudget", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service",
		"Deployment",
	}, fmt.Sprint(object["kind"]))
}

// load reads the chart of a release from the catalogue. It is read anew each time: templates change the chart's own values.
func load(of plan.Release) (*chart.Chart, error) {
	release, err := karpenter.Find(of.Version)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", of.Name, err)
	}
	embedded, err := release.Chart(ownership.ReleaseController)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", of.Name, err)
	}
	var files []*archive.BufferedFile
	err = fs.WalkDir(embedded, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(embedded, path)
		files = append(files, &archive.BufferedFile{Name: path, Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("chart %s: read: %w", of.Name, err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("chart %s: load: %w", of.Name, err)
	}
	return loaded, nil
}
