package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// compatibility is the file of the minor versions of Kubernetes that each minor version of Karpenter is for, and
// versionPackage the package with those of the code itself.
const (
	compatibility  = "hack/docs/compatibilitymatrix_gen/compatibility.yaml"
	versionPackage = "pkg/providers/version"
)

// row matches an entry of the compatibility file. As YAML, 1.30 would be the number 1.3.
var row = regexp.MustCompile(`appVersion: (\S+)\s+minK8sVersion: "?([\d.]+)"?\s+maxK8sVersion: "?([\d.]+)"?`)

// minors returns the minor versions of Kubernetes that a version is for: those of its row in the compatibility file, or
// those of its code if the file does not list the version yet. Where it has both, they must be the same.
func minors(provider, version string) (karpenter.Minors, error) {
	text, err := os.ReadFile(filepath.Join(provider, compatibility))
	if err != nil {
		return karpenter.Minors{}, err
	}
	parsed, err := parse(filepath.Join(provider, versionPackage))
	if err != nil {
		return karpenter.Minors{}, err
	}
	found := karpenter.Minors{Oldest: parsed.text("MinK8sVersion"), Newest: parsed.text("MaxK8sVersion"), Source: versionPackage}
	if found.Oldest == "" || found.Newest == "" {
		return found, fmt.Errorf("%s has no constants MinK8sVersion and MaxK8sVersion", versionPackage)
	}
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 10 {
		return found, fmt.Errorf("%s: only %d entries could be read", compatibility, len(rows))
	}
	minor := version[:strings.LastIndex(version, ".")]
	for _, r := range rows {
		if r[1] != minor+".x" && r[1] != version {
			continue
		}
		if r[2] != found.Oldest || r[3] != found.Newest {
			return found, fmt.Errorf("%s says that %s is for Kubernetes %s to %s, and %s says %s to %s: find out which is right",
				compatibility, r[1], r[2], r[3], versionPackage, found.Oldest, found.Newest)
		}
		found.Source = compatibility
	}
	return found, nil
}
