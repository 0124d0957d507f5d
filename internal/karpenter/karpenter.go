// Package karpenter is the catalogue of the Karpenter versions that Sawhorse can install: for each one its charts, its
// CRDs, the policies of its controller, and facts about it. Most of it comes from the version's Go module, by
// `make karpenter VERSION=…` (tools/karpenter); the policies and notes.json are kept by hand.
package karpenter

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Release is one version of Karpenter.
type Release struct {
	// Version is the version without the leading v, such as "1.12.1". It is the tag of the controller's image, and the
	// version of both charts.
	Version string `json:"version"`
	// Core is the version of the module sigs.k8s.io/karpenter from which NodePool was read. It is the one that the
	// provider's go.mod names, or a near one if that cannot be had.
	Core string `json:"core"`
	// Kubernetes has the minor versions of Kubernetes that this version is for.
	Kubernetes Minors `json:"kubernetes"`
	// ChartDigests are the digests of the files of both charts, by the names of their releases (Digest).
	ChartDigests map[string]string `json:"chartDigests"`
	// CRDNames are the names of the CustomResourceDefinitions in the chart of the CRDs, sorted.
	CRDNames []string `json:"crdNames"`
	// Calls are the IAM actions of all AWS API calls in the version's code, sorted. Some are made only with a setting
	// of the chart that is off by default, and some in tests only.
	Calls []string `json:"calls"`
	// Events are the events that the version reads from its interruption queue, in its own order.
	Events []Event `json:"events"`
	// NodePool and EC2NodeClass say which fields Karpenter hashes. It replaces the nodes of an object whose hash changes.
	NodePool     Hash `json:"nodePool"`
	EC2NodeClass Hash `json:"ec2NodeClass"`

	// Notes are kept by hand.
	Notes `json:"-"`
}

// Minors is a range of minor versions of Kubernetes, both ends included.
type Minors struct {
	// Oldest and Newest are versions such as "1.26".
	Oldest string `json:"oldest"`
	Newest string `json:"newest"`
	// Source is the file of the version's module that has them.
	Source string `json:"source"`
}

// String returns the range for a sentence.
func (m Minors) String() string { return m.Oldest + " to " + m.Newest }

// Lists reports whether a version of Kubernetes is in the range. A text that is not a version counts as listed.
func (m Minors) Lists(version string) bool {
	wanted, known := minor(version)
	if !known {
		return true
	}
	oldest, _ := minor(m.Oldest)
	newest, _ := minor(m.Newest)
	return slices.Compare(wanted[:], oldest[:]) >= 0 && slices.Compare(wanted[:], newest[:]) <= 0
}

// minor returns the major and the minor number of a version like "1.35" or "1.35.2".
func minor(version string) (numbers [2]int, known bool) {
	_, err := fmt.Sscanf(version, "%d.%d", &numbers[0], &numbers[1])
	return numbers, err == nil
}

// Event is a kind of EventBridge event.
type Event struct {
	Source     string `json:"source"`
	DetailType string `json:"detailType"`
}

// Hash describes what an object's hash covers. Paths have the names of the manifest; [] stands for each element of a list.
type Hash struct {
	// Version changes when the same object gets another hash, such as "v4".
	Version string `json:"version"`
	// Covers are the paths of the fields in the hash, sorted.
	Covers []string `json:"covers"`
	// Ignores are the paths of the fields of the same part of the object that are not in the hash, sorted.
	Ignores []string `json:"ignores"`
	// Besides are values in the hash that are not fields of the object, in the names of Karpenter's source.
	Besides []string `json:"besides,omitempty"`
}

// Notes are what a version's module does not have.
type Notes struct {
	// Digest is the digest of the controller's image for all architectures; empty if it is not known.
	Digest string `json:"digest,omitempty"`
	// DigestSource says where the digest was found, or why it is not known.
	DigestSource string `json:"digestSource,omitempty"`
	// PoliciesOf is the version whose folder has the policies: this one, or an older one with the same policies.
	PoliciesOf string `json:"policiesOf"`
	// Upgrade says what an upgrade to this version from the one before it in the catalogue does to a cluster.
	Upgrade []Note `json:"upgrade"`
}

// Note is one sentence or more, and where it was found.
type Note struct {
	Text   string `json:"text"`
	Source string `json:"source"`
}

// Each kind of file has a variable of its own, so that the linker leaves out what a function does not use.
var (
	//go:embed catalogue/*/release.json catalogue/*/notes.json
	facts embed.FS
	//go:embed all:catalogue/*/karpenter
	controllerCharts embed.FS
	//go:embed catalogue/*/karpenter/values.yaml
	controllerValues embed.FS
	//go:embed all:catalogue/*/karpenter-crd
	crdCharts embed.FS
	//go:embed catalogue/*/policies/*.json
	policies embed.FS
	//go:embed catalogue/*/kubelet.json
	kubelets embed.FS
)

// folder is the root of the embedded files.
const folder = "catalogue"

// read decodes the catalogue on first use.
var read = sync.OnceValue(func() []Release {
	versions := Versions()
	all := make([]Release, len(versions))
	for i, version := range versions {
		decode(version+"/release.json", &all[i])
		decode(version+"/notes.json", &all[i].Notes)
	}
	return all
})

func decode(name string, to any) {
	text, err := facts.ReadFile(folder + "/" + name)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic("karpenter: " + name + ": " + err.Error()) // a broken file would fail every test
	}
}

// All returns all versions, the oldest first.
func All() []Release { return slices.Clone(read()) }

// Versions returns the names of all versions, the oldest first. It decodes no file.
func Versions() []string {
	versions, err := facts.ReadDir(folder)
	if err != nil {
		panic("karpenter: " + err.Error()) // a broken file would fail every test
	}
	var all []string
	for _, version := range versions {
		all = append(all, version.Name())
	}
	slices.SortFunc(all, Compare)
	return all
}

// Default returns the version of a rack that turns Karpenter on without a choice.
func Default() Release {
	r, err := Find(ownership.KarpenterVersion)
	if err != nil {
		panic(err) // a test has it
	}
	return r
}

// Find returns a version. Its error names the versions that there are.
func Find(version string) (Release, error) {
	for _, r := range read() {
		if r.Version == version {
			return r, nil
		}
	}
	return Release{}, fmt.Errorf("karpenter %q is no version that Sawhorse has; it has %s", version, strings.Join(Versions(), ", "))
}

// Compare returns a negative number if version a is older than b, 0 if they are equal, and a positive number otherwise.
func Compare(a, b string) int {
	var one, other [3]int
	_, _ = fmt.Sscanf(a, "%d.%d.%d", &one[0], &one[1], &one[2])
	_, _ = fmt.Sscanf(b, "%d.%d.%d", &other[0], &other[1], &other[2])
	return cmp.Or(slices.Compare(one[:], other[:]), strings.Compare(a, b))
}
