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

// sumsFile has the modules of a version and their checksums, in the form of go.sum.
const sumsFile = "modules.sum"

var released = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// modules has the folders of a version's modules. kubelet is empty if the provider does not read that module.
type modules struct{ provider, core, coreVersion, kubelet string }

// module is the answer of go mod download.
type module struct{ Path, Version, Error, Dir, Sum string }

// obtain downloads the modules of a version. The file sums records their checksums: modules that are recorded must have
// the same ones, and the recorded version of the core module is used again.
func obtain(sums, version, core, toolchain string) (modules, error) {
	recorded, err := readSums(sums)
	if err != nil {
		return modules{}, err
	}
	provider, err := download(providerModule, version, toolchain)
	if err != nil {
		return modules{}, err
	}
	named, err := requirement(filepath.Join(provider.Dir, "go.mod"), coreModule)
	if err != nil {
		return modules{}, err
	}
	if core == "" {
		core = named
		for line := range recorded {
			if path, version, _ := strings.Cut(line, " v"); path == coreModule {
				core = version
			}
		}
	}
	found, err := download(coreModule, core, toolchain)
	if err != nil {
		return modules{}, fmt.Errorf("%w; %s %s names %s %s: if it cannot be had, say which near version to read instead "+
			"(make karpenter VERSION=%s CORE=…)",
			err, providerModule, version, coreModule, named, version)
	}
	all := []module{provider, found}
	from := modules{provider: provider.Dir, core: found.Dir, coreVersion: core}
	if kubelet, err := requirement(filepath.Join(provider.Dir, "go.mod"), kubeletModule); err == nil {
		types, err := download(kubeletModule, kubelet, toolchain)
		if err != nil {
			return modules{}, err
		}
		from.kubelet, all = types.Dir, append(all, types)
	}
	var lines strings.Builder
	for _, m := range all {
		if sum := recorded[m.Path+" "+m.Version]; sum != "" && sum != m.Sum {
			return modules{}, fmt.Errorf("%s %s has the checksum %s, and %s says %s: "+
				"the release was changed, or another one was downloaded; find out which before you go on",
				m.Path, m.Version, m.Sum, sums, sum)
		}
		fmt.Fprintf(&lines, "%s %s %s\n", m.Path, m.Version, m.Sum)
	}
	return from, os.WriteFile(sums, []byte(lines.String()), 0o644)
}

// readSums returns the checksums of a file by module and version; none if there is no file.
func readSums(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: %q is not a module, a version and a checksum", file, line)
		}
		all[fields[0]+" "+fields[1]] = fields[2]
	}
	return all, nil
}

// download brings a module into Go's module cache. It runs outside of this repository's module, whose go.mod it must
// neither need nor change.
func download(path, version, toolchain string) (module, error) {
	outside, err := os.MkdirTemp("", "karpenter-")
	if err != nil {
		return module{}, err
	}
	defer os.RemoveAll(outside)
	command := exec.Command("go", "mod", "download", "-json", path+"@v"+version)
	command.Dir, command.Env = outside, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if toolchain != "" {
		command.Env = append(command.Env, "GOTOOLCHAIN="+toolchain)
	}
	var complaint strings.Builder
	command.Stderr = &complaint
	out, failed := command.Output()
	var m module
	if err := json.Unmarshal(out, &m); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return m, fmt.Errorf("go mod download %s@v%s: %w: %s", path, version, errors.Join(failed, err), complaint.String())
	}
	if m.Error != "" || failed != nil {
		return m, fmt.Errorf("go mod download: %s%s", m.Error, complaint.String())
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
