package karpenter

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// Chart returns the files of the chart of the controller or of the CRDs, by the name of its release.
func (r Release) Chart(name string) (fs.FS, error) {
	switch name {
	case names.ReleaseController:
		return fs.Sub(controllerCharts, path.Join(folder, r.Version, name))
	case names.ReleaseCRD:
		return fs.Sub(crdCharts, path.Join(folder, r.Version, name))
	}
	return nil, fmt.Errorf("karpenter %s: there is no chart %q", r.Version, name)
}

// CRDs returns the version's CustomResourceDefinitions in YAML, by name, such as "nodepools.karpenter.sh". They are the
// templates of the chart karpenter-crd without the lines that add annotations.
func (r Release) CRDs() (map[string][]byte, error) {
	templates := path.Join(folder, r.Version, names.ReleaseCRD, "templates")
	files, err := fs.ReadDir(crdCharts, templates)
	if err != nil {
		return nil, fmt.Errorf("karpenter %s: CRDs: %w", r.Version, err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		text, err := fs.ReadFile(crdCharts, path.Join(templates, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("karpenter %s: CRDs: %w", r.Version, err)
		}
		group, plural, _ := strings.Cut(strings.TrimSuffix(file.Name(), ".yaml"), "_")
		all[plural+"."+group] = Untemplated(text)
	}
	return all, nil
}

// Untemplated returns a template of the chart karpenter-crd without its lines for Helm.
func Untemplated(template []byte) []byte {
	var text strings.Builder
	for line := range strings.Lines(string(template)) {
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "{{-") {
			text.WriteString(line)
		}
	}
	return []byte(text.String())
}

// Policies returns the policy documents of the controller's role, by name, with ${…} for what differs between clusters.
// They are those of the CloudFormation template in the version's documentation, except that of the account's subnets and
// security groups they allow only those with the cluster's discovery tag.
func (r Release) Policies() (map[string][]byte, error) {
	documents := path.Join(folder, r.PoliciesOf, "policies")
	files, err := fs.ReadDir(policies, documents)
	if err != nil {
		return nil, fmt.Errorf("karpenter %s: policies: %w", r.Version, err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		text, err := fs.ReadFile(policies, path.Join(documents, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("karpenter %s: policies: %w", r.Version, err)
		}
		all[strings.TrimSuffix(file.Name(), ".json")] = text
	}
	return all, nil
}
