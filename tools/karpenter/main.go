// Command karpenter writes what the catalogue has of versions of Karpenter, from their Go modules:
//
//	make karpenter VERSION=1.14.3
//
// It exits with 3 if modules could not be downloaded and nothing else was wrong.
//
// It is a module of its own, because only maintainers of Sawhorse need it. It leaves the files alone that are kept by hand:
// notes.json, which it begins if there is none, and the policies. The same modules give the same bytes.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// catalogue is the folder of the catalogue, from this one.
const catalogue = "../../internal/karpenter/catalogue"

// unreached is the exit status if modules could not be downloaded.
const unreached = 3

func main() {
	core := flag.String("core", "", "the version of sigs.k8s.io/karpenter to read, if the one that the version's go.mod names cannot be had")
	toolchain := flag.String("toolchain", "", "the Go toolchain (GOTOOLCHAIN) for the download; a module may want a newer one")
	flag.Parse()
	os.Exit(all(flag.Args(), func(version string) error { return run(version, *core, *toolchain) }))
}

// all writes versions, one after the other, and returns the exit status.
func all(versions []string, write func(version string) error) int {
	status := 0
	for _, version := range versions {
		err := write(version)
		if err != nil {
			fmt.Fprintln(os.Stderr, "karpenter:", err)
		}
		switch {
		case err == nil:
			fmt.Fprintf(os.Stderr, "karpenter: %s is written from its modules\n", version)
		case !errors.Is(err, errUnreached):
			status = 1
		case status == 0:
			status = unreached
		}
	}
	return status
}

func run(version, core, toolchain string) error {
	if !released.MatchString(version) {
		return fmt.Errorf("VERSION is %q; it must be a released version such as 1.14.3", version)
	}
	target := filepath.Join(catalogue, version)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	from, err := obtain(filepath.Join(target, sumsFile), version, core, toolchain)
	if err != nil {
		return err
	}
	if err := write(target, version, from); err != nil {
		return err
	}
	return begin(target, version)
}

// write writes the generated files of a version.
func write(target, version string, from modules) error {
	for _, chart := range []string{ownership.ReleaseController, ownership.ReleaseCRD} {
		if err := copyChart(filepath.Join(from.provider, "charts", chart), filepath.Join(target, chart), version); err != nil {
			return fmt.Errorf("chart %s: %w", chart, err)
		}
	}
	crds, err := crdNames(from.provider)
	if err != nil {
		return err
	}
	if err := writeKubelet(filepath.Join(target, "kubelet.json"), from.kubelet); err != nil {
		return err
	}
	release, err := describe(version, from)
	if err != nil {
		return err
	}
	release.CRDNames = crds
	release.ChartDigests = map[string]string{}
	for _, chart := range []string{ownership.ReleaseController, ownership.ReleaseCRD} {
		if release.ChartDigests[chart], err = karpenter.Digest(os.DirFS(filepath.Join(target, chart))); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(target, "release.json"), release)
}

// describe finds the facts about a version in the sources of its modules.
func describe(version string, from modules) (karpenter.Release, error) {
	r := karpenter.Release{Version: version, Core: from.coreVersion}
	var err error
	if r.Kubernetes, err = minors(from.provider, version); err != nil {
		return r, err
	}
	if r.Calls, err = calls(from.provider); err != nil {
		return r, err
	}
	if r.Events, err = events(from.provider); err != nil {
		return r, err
	}
	if r.NodePool, err = hash(filepath.Join(from.core, "pkg", "apis", "v1"), "NodePool"); err != nil {
		return r, err
	}
	r.EC2NodeClass, err = hash(filepath.Join(from.provider, "pkg", "apis", "v1"), "EC2NodeClass")
	return r, err
}

// begin writes the notes of a version that has none, with the policies of the version before it.
func begin(target, version string) error {
	file := filepath.Join(target, "notes.json")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var before string
	folders, err := os.ReadDir(catalogue)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		older := folder.IsDir() && karpenter.Compare(folder.Name(), version) < 0
		if older && (before == "" || karpenter.Compare(folder.Name(), before) > 0) {
			before = folder.Name()
		}
	}
	notes := karpenter.Notes{Upgrade: []karpenter.Note{}}
	if before != "" {
		text, err := os.ReadFile(filepath.Join(catalogue, before, "notes.json"))
		if err != nil {
			return err
		}
		var last karpenter.Notes
		if err := json.Unmarshal(text, &last); err != nil {
			return fmt.Errorf("%s: notes.json: %w", before, err)
		}
		notes.PoliciesOf = last.PoliciesOf
	}
	fmt.Fprintf(os.Stderr, "karpenter: %s is new; write into it what an upgrade to %s does to a cluster, "+
		"compare the policies with those of its documentation, and add that reference to the tests (docs/karpenter-versions.md)\n", file, version)
	return writeJSON(file, notes)
}

func writeJSON(file string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: encode: %w", file, err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
