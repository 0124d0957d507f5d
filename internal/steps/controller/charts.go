package controller

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// The charts are copies, because Go can embed only files of its own module. A test compares them with the module that
// go.sum verifies; `go test ./internal/steps/controller -update` copies them again.
//
//go:embed all:charts
var charts embed.FS

// digest returns a hash of a chart's files, by which a plan names the chart.
func digest(name string) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(charts, "charts/"+name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := charts.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(data), data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("chart %s: read: %w", name, err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// load reads an embedded chart and sets its version. The charts in Karpenter's repository lag behind: at its tag
// v1.10.0 they still say 1.9.0.
func load(name, version string) (*chart.Chart, error) {
	root := "charts/" + name
	var files []*archive.BufferedFile
	err := fs.WalkDir(charts, root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := charts.ReadFile(path)
		files = append(files, &archive.BufferedFile{Name: strings.TrimPrefix(path, root+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("chart %s: read: %w", name, err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("chart %s: load: %w", name, err)
	}
	loaded.Metadata.Version, loaded.Metadata.AppVersion = version, version
	return loaded, nil
}
