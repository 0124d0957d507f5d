package controller

import (
	"fmt"
	"io/fs"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

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
