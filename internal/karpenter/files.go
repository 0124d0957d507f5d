package karpenter

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Chart returns the files of the chart of the controller or of the CRDs, by the name of its release.
func (r Release) Chart(name string) (fs.FS, error) {
	switch name {
	case ownership.ReleaseController:
		return fs.Sub(controllerCharts, path.Join(folder, r.Version, name))
	case ownership.ReleaseCRD:
		return fs.Sub(crdCharts, path.Join(folder, r.Version, name))
	}
	return nil, fmt.Errorf("karpenter %s: there is no chart %q", r.Version, name)
}

// Values returns the default values of the controller's chart.
func (r Release) Values() (map[string]any, error) {
	text, err := controllerValues.ReadFile(path.Join(folder, r.Version, ownership.ReleaseController, "values.yaml"))
	var values map[string]any
	if err == nil {
		err = yaml.Unmarshal(text, &values)
	}
	if err != nil {
		return nil, fmt.Errorf("karpenter %s: values: %w", r.Version, err)
	}
	return values, nil
}

// Digest returns a digest of the names and the contents of all files of a chart. It changes if the chart does.
func Digest(chart fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(chart, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(chart, path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("chart: digest: %w", err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// CRDs returns the version's CustomResourceDefinitions in YAML, by name, such as "nodepools.karpenter.sh". They are the
// templates of the chart karpenter-crd without the lines that add annotations.
func (r Release) CRDs() (map[string][]byte, error) {
	all, err := r.texts(crdCharts, path.Join(r.Version, ownership.ReleaseCRD, "templates"), CRDName)
	for name, text := range all {
		all[name] = Untemplated(text)
	}
	return all, err
}

// CRDName returns the name of the CustomResourceDefinition in a file such as karpenter.sh_nodepools.yaml.
func CRDName(file string) string {
	group, plural, _ := strings.Cut(strings.TrimSuffix(file, ".yaml"), "_")
	return plural + "." + group
}

// texts returns the contents of the files in a folder of the catalogue, by the names that name makes of theirs.
func (r Release) texts(files embed.FS, from string, name func(file string) string) (map[string][]byte, error) {
	entries, err := files.ReadDir(path.Join(folder, from))
	all := map[string][]byte{}
	for _, entry := range entries {
		if err == nil {
			all[name(entry.Name())], err = files.ReadFile(path.Join(folder, from, entry.Name()))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("karpenter %s: %w", r.Version, err)
	}
	return all, nil
}

// Kubelet returns the JSON schema of the kubelet's configuration, if the version's CRD leaves the field kubelet of an
// EC2NodeClass open and its controller checks it. Otherwise it returns nil.
func (r Release) Kubelet() []byte {
	text, err := kubelets.ReadFile(path.Join(folder, r.Version, "kubelet.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic("karpenter: " + err.Error()) // an embedded file
	}
	return text
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
// security groups they allow only those with the cluster's discovery tag, and of images only Amazon's and the account's own
// with the tag of images for nodes.
func (r Release) Policies() (map[string][]byte, error) {
	return r.texts(policies, path.Join(r.PoliciesOf, "policies"), func(file string) string { return strings.TrimSuffix(file, ".json") })
}
