package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// The modules of a version.
const (
	providerModule = "github.com/aws/karpenter-provider-aws"
	coreModule     = "sigs.k8s.io/karpenter"
)

// sumsFile has the modules of a version and their checksums: it is the go.sum of their downloads.
const sumsFile = "modules.sum"

var released = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// modules has the folders of a version's modules. kubelet is empty if the provider does not read that module.
type modules struct{ provider, core, coreVersion, kubelet string }

// module is the answer of go mod download.
type module struct{ Path, Version, Error, Dir, Sum, GoModSum string }

// errUnreached means that a module could not be downloaded, so that nothing was found out.
var errUnreached = errors.New("NOT LOOKED AT: it could not be downloaded")

// obtain downloads the modules of a version. The file sums records their checksums: Go downloads modules that are recorded
// only with the same ones, and all others as Go's checksum database has them. The recorded version of the core module is
// used again.
func obtain(sums, version, core, toolchain string) (modules, error) {
	recorded, err := os.ReadFile(sums)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return modules{}, err
	}
	from := downloads{recorded, toolchain}
	provider, err := from.download(providerModule, version)
	if err != nil {
		return modules{}, err
	}
	named, err := requirement(filepath.Join(provider.Dir, "go.mod"), coreModule)
	if err != nil {
		return modules{}, err
	}
	if core == "" {
		core = named
		if line := coreLine.FindSubmatch(recorded); line != nil {
			core = string(line[1])
		}
	}
	found, err := from.download(coreModule, core)
	if err != nil {
		return modules{}, fmt.Errorf("%w; %s %s names %s %s: if it cannot be had, say which near version to read instead "+
			"(make karpenter VERSION=%s CORE=…)",
			err, providerModule, version, coreModule, named, version)
	}
	all := []module{provider, found}
	obtained := modules{provider: provider.Dir, core: found.Dir, coreVersion: core}
	if kubelet, err := requirement(filepath.Join(provider.Dir, "go.mod"), kubeletModule); err == nil {
		types, err := from.download(kubeletModule, kubelet)
		if err != nil {
			return modules{}, err
		}
		obtained.kubelet, all = types.Dir, append(all, types)
	}
	var lines strings.Builder
	for _, m := range all {
		fmt.Fprintf(&lines, "%s %s %s\n%s %s/go.mod %s\n", m.Path, m.Version, m.Sum, m.Path, m.Version, m.GoModSum)
	}
	return obtained, os.WriteFile(sums, []byte(lines.String()), 0o644)
}

// coreLine finds the recorded version of the core module.
var coreLine = regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(coreModule) + ` v([^/\s]+) `)

// downloads brings modules into Go's module cache. recorded is the go.sum that they must agree with.
type downloads struct {
	recorded  []byte
	toolchain string
}

// download runs in a module of its own, because it must neither need nor change this repository's. Go compares what is
// recorded in the go.sum there, and asks the checksum database for the rest. What the caller's environment exempts from
// that (GONOSUMDB) is only for modules that are not recorded.
func (d downloads) download(path, version string) (module, error) {
	outside, err := os.MkdirTemp("", "karpenter-")
	if err != nil {
		return module{}, err
	}
	defer os.RemoveAll(outside)
	for name, text := range map[string][]byte{"go.mod": []byte("module catalogue\n\ngo 1.21\n"), "go.sum": d.recorded} {
		if err := os.WriteFile(filepath.Join(outside, name), text, 0o644); err != nil {
			return module{}, err
		}
	}
	command := exec.Command("go", "mod", "download", "-json", path+"@v"+version)
	command.Dir, command.Env = outside, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if d.toolchain != "" {
		command.Env = append(command.Env, "GOTOOLCHAIN="+d.toolchain)
	}
	var complaint strings.Builder
	command.Stderr = &complaint
	out, failed := command.Output()
	if said := complaint.String() + string(out); strings.Contains(said, "SECURITY ERROR") || strings.Contains(said, "malformed go.sum") {
		return module{}, fmt.Errorf("%s v%s: the release or %s was changed, or another one was downloaded; find out which before you go on: %s",
			path, version, sumsFile, said)
	}
	var m module
	if err := json.Unmarshal(out, &m); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return m, fmt.Errorf("%s v%s: %w: go mod download: %w: %s", path, version, errUnreached, errors.Join(failed, err), complaint.String())
	}
	if m.Error != "" || failed != nil {
		return m, fmt.Errorf("%s v%s: %w: go mod download: %s%s", path, version, errUnreached, m.Error, complaint.String())
	}
	return m, nil
}

// requirement returns the version of a module in a go.mod, without the v.
func requirement(file, module string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(module) + ` v(\S+)`).FindStringSubmatch(string(text))
	if found == nil {
		return "", fmt.Errorf("%s does not require %s", file, module)
	}
	return found[1], nil
}
