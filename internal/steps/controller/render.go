package controller

import (
	"fmt"
	"io/fs"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// rendered is a release as the plan wants it, with its rendered manifest.
type rendered struct {
	name   string
	chart  *chart.Chart
	values map[string]any
	// capabilities is what the templates were told about the cluster.
	capabilities *common.Capabilities
	// manifest is the text of all objects that the chart renders from the values.
	manifest string
}

// capabilities is what both render and Helm tell templates about the cluster, so that both render the same. It
// describes the oldest Kubernetes version that Karpenter 1.10 lists, as far as the charts ask.
var capabilities = &common.Capabilities{
	KubeVersion: common.KubeVersion{Version: "v1.26.0", Major: "1", Minor: "26"}, APIVersions: common.VersionSet{"v1", "policy/v1"},
}

// render renders the objects of a release from an embedded chart and values, as a Helm installation does.
func render(name, version string, values map[string]any) (rendered, error) {
	return renderFor(capabilities, name, version, values)
}

// renderFor is render, with what the templates are told about the cluster.
func renderFor(capabilities *common.Capabilities, name, version string, values map[string]any) (rendered, error) {
	r := rendered{name: name, values: values, capabilities: capabilities}
	var err error
	if r.chart, err = load(name, version); err != nil {
		return r, err
	}
	input, err := util.ToRenderValues(r.chart, values, common.ReleaseOptions{Name: name, Namespace: ownership.Namespace}, capabilities)
	if err != nil {
		return r, fmt.Errorf("release %s: values: %w", name, err)
	}
	files, err := engine.Render(r.chart, input)
	if err != nil {
		return r, fmt.Errorf("release %s: render: %w", name, err)
	}
	_, objects, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder) // the charts have no hooks
	if err != nil {
		return r, fmt.Errorf("release %s: render: %w", name, err)
	}
	var text strings.Builder
	for _, object := range objects {
		fmt.Fprintf(&text, "---\n%s\n", object.Content)
	}
	r.manifest = text.String()
	return r, nil
}

// load reads a chart of a version from the catalogue.
func load(name, version string) (*chart.Chart, error) {
	release, err := karpenter.Find(version)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
	}
	embedded, err := release.Chart(name)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
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
		return nil, fmt.Errorf("chart %s: read: %w", name, err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("chart %s: load: %w", name, err)
	}
	return loaded, nil
}
