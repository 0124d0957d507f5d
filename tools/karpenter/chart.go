package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// override replaces the one line of a chart's file that a pattern matches.
type override struct {
	pattern *regexp.Regexp
	text    string
}

// overrides returns the lines of a chart's file that differ from the module's, which has the version, the image's tag and
// its digest of an earlier release. The module does not have the right digest.
func overrides(chart, file, version string) []override {
	switch {
	case file == "Chart.yaml":
		return []override{
			{regexp.MustCompile(`(?m)^version: .*$`), "version: " + version},
			{regexp.MustCompile(`(?m)^appVersion: .*$`), "appVersion: " + version},
		}
	case file == "values.yaml" && chart == ownership.ReleaseController:
		return []override{
			{regexp.MustCompile(`(?m)^    tag: .*$`), "    tag: " + version},
			{regexp.MustCompile(`(?m)^    digest: .*$`), `    digest: ""`},
		}
	}
	return nil
}

// copyChart writes a chart anew, without the files that Helm does not need.
func copyChart(from, to, version string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, "templates"), 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"Chart.yaml", "values.yaml", "templates/*"} {
		files, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("the module has no %s", pattern)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(from, file)
			if err != nil {
				return err
			}
			for _, o := range overrides(filepath.Base(from), name, version) {
				if found := o.pattern.FindAll(text, -1); len(found) != 1 {
					return fmt.Errorf("%s has %d lines like %s; the generator knows charts with one", name, len(found), o.pattern)
				}
				text = o.pattern.ReplaceAllLiteral(text, []byte(o.text))
			}
			if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// crdNames returns the names of the CRDs in a module. It fails if their two forms differ: the templates of the chart, which
// the catalogue has, and the files of the API package.
func crdNames(provider string) ([]string, error) {
	templates, err := filepath.Glob(filepath.Join(provider, "charts", ownership.ReleaseCRD, "templates", "*"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(provider, "pkg", "apis", "crds", "*"))
	if err != nil {
		return nil, err
	}
	if len(files) != len(templates) || len(files) == 0 {
		return nil, fmt.Errorf("the chart of the CRDs has %d of them, pkg/apis/crds has %d", len(templates), len(files))
	}
	var names []string
	for i, file := range files {
		crd, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		template, err := os.ReadFile(templates[i])
		if err != nil {
			return nil, err
		}
		if filepath.Base(file) != filepath.Base(templates[i]) || !bytes.Equal(karpenter.Untemplated(template), crd) {
			return nil, fmt.Errorf("%s is not %s with lines for Helm", templates[i], file)
		}
		names = append(names, karpenter.CRDName(filepath.Base(file)))
	}
	slices.Sort(names)
	return names, nil
}
