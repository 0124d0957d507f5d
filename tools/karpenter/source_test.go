package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// files writes files by name into a new folder.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range texts {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// api is an API package with every form of field and of term that Karpenter uses.
const api = `package v1

const ThingHashVersion = "v7"

type Thing struct {
	Metadata
	Spec ThingSpec ` + "`json:\"spec\"`" + `
}

type ThingSpec struct {
	Common   ` + "`json:\",inline\"`" + `
	Family   *string           ` + "`json:\"family,omitempty\" hash:\"ignore\"`" + `
	Disks    []*Disk           ` + "`json:\"disks\"`" + `
	Open     Open              ` + "`json:\"open\" hash:\"ignore\"`" + `
	After    Duration          ` + "`json:\"after\"`" + `
	Selected []string          ` + "`json:\"selected\" hash:\"ignore\"`" + `
	Tags     map[string]string ` + "`json:\"tags\"`" + `
}

type Common struct {
	Role string ` + "`json:\"role\"`" + `
}

type Disk struct {
	Size  *int   ` + "`json:\"size\" hash:\"string\"`" + `
	State string ` + "`json:\"state\" hash:\"ignore\"`" + `
}

type Open map[string]string

type Duration struct {
	Raw []byte ` + "`hash:\"ignore\"`" + `
}

func (d Duration) MarshalJSON() ([]byte, error) { return d.Raw, nil }

func (in *Thing) Hash(bundle *string) string {
	return sprint(hashstructure.Hash(TERMS, hashstructure.FormatV2, nil))
}
`

func TestHash(t *testing.T) {
	for terms, want := range map[string]karpenter.Hash{
		"in.Spec": {
			Version: "v7", Covers: []string{"spec.after", "spec.disks[].size", "spec.role", "spec.tags"},
			Ignores: []string{"spec.disks[].state", "spec.family", "spec.open", "spec.selected"},
		},
		"[]any{in.Spec, in.Family(), from(bundle), in.Spec.Open.String()}": {
			Version: "v7", Covers: []string{"spec.after", "spec.disks[].size", "spec.family", "spec.open", "spec.role", "spec.tags"},
			Ignores: []string{"spec.disks[].state", "spec.selected"}, Besides: []string{"bundle"},
		},
	} {
		got, err := hash(files(t, map[string]string{"thing.go": strings.Replace(api, "TERMS", terms, 1)}), "Thing")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", terms, got, err, want)
		}
	}
}

// Whatever the generator does not know is an error and not a shorter list.
func TestHashRefusesWhatItDoesNotKnow(t *testing.T) {
	for terms, want := range map[string]string{
		"[]any{in.Spec, elsewhere()}":  "the generator does not know what the call of elsewhere adds",
		"[]any{in.Spec, pkg.Of(1)}":    "the generator does not know what the call of Of adds",
		"[]any{in.Spec, \"text\"}":     "the generator does not know a value of type *ast.BasicLit",
		"[]any{in.Spec, in.Unknown()}": "spec has no field Unknown",
	} {
		_, err := hash(files(t, map[string]string{"thing.go": strings.Replace(api, "TERMS", terms, 1)}), "Thing")
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s", terms, err, want)
		}
	}
}

const sdk = `package sdk

type EC2API interface {
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	RunInstances(context.Context, *ec2.RunInstancesInput, ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
	StopInstances(context.Context, *ec2.StopInstancesInput, ...func(*ec2.Options)) (*ec2.StopInstancesOutput, error)
}
`

func TestCalls(t *testing.T) {
	root := files(t, map[string]string{
		"pkg/aws/sdk.go":     sdk,
		"pkg/fake/ec2.go":    "package fake\nfunc f() { x.StopInstances() }",
		"pkg/a/a.go":         "package a\nfunc f() { p := ec2.NewDescribeImagesPaginator(c, nil); use(p) }",
		"pkg/a/a_test.go":    "package a\nfunc g() { x.StopInstances() }",
		"cmd/main.go":        "package main\nfunc f() { c.ec2.RunInstances(ctx, nil) }",
		"pkg/fakes/other.go": "package fakes\nfunc f() { c.DescribeSubnets(ctx, nil) }",
	})
	got, err := calls(root)
	if want := []string{"ec2:DescribeImages", "ec2:DescribeSubnets", "ec2:RunInstances"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	root = files(t, map[string]string{"pkg/aws/sdk.go": strings.ReplaceAll(sdk, "ec2.", "glacier."), "cmd/main.go": "package main"})
	_, err = calls(root)
	want := "pkg/aws: EC2API: DescribeImages is of service glacier, whose IAM prefix the generator does not know; add it to prefixes"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The minor versions come from the version's own row, else from its code, and the two must agree.
func TestMinors(t *testing.T) {
	rows := strings.Repeat("  - appVersion: 0.1.x\n    minK8sVersion: 1.20\n    maxK8sVersion: 1.21\n", 10)
	own := "  - appVersion: 1.30.x\n    minK8sVersion: 1.26\n    maxK8sVersion: 1.40"
	for _, c := range []struct{ rows, version, source, refused string }{
		{rows + own, "1.30.2", compatibility, ""},
		{rows, "1.30.2", versionPackage, ""},
		{rows + own, "1.31.0", versionPackage, ""},
		{rows + strings.Replace(own, "1.40", "1.39", 1), "1.30.2", "",
			"1.30.x is for Kubernetes 1.26 to 1.39, and pkg/providers/version says 1.26 to 1.40: find out which is right"},
		{"", "1.30.2", "", "only 0 entries could be read"},
	} {
		root := files(t, map[string]string{
			compatibility:                  c.rows,
			versionPackage + "/version.go": "package version\nconst (\n\tMinK8sVersion = \"1.26\"\n\tMaxK8sVersion = \"1.40\"\n)",
		})
		got, err := minors(root, c.version)
		switch {
		case c.refused != "":
			if err == nil || !strings.HasSuffix(err.Error(), c.refused) {
				t.Errorf("%s: got %v, want …%s", c.version, err, c.refused)
			}
		case err != nil || got != karpenter.Minors{Oldest: "1.26", Newest: "1.40", Source: c.source}:
			t.Errorf("%s: got %+v, %v", c.version, got, err)
		}
	}
}

func TestCopyChart(t *testing.T) {
	chart := map[string]string{
		"karpenter/Chart.yaml":       "name: karpenter\nversion: 1.14.1\nappVersion: 1.14.1\n",
		"karpenter/values.yaml":      "controller:\n  image:\n    tag: 1.14.1\n    digest: sha256:abc\n",
		"karpenter/README.md":        "",
		"karpenter/templates/a.yaml": "a: b\n",
	}
	to := filepath.Join(t.TempDir(), "karpenter")
	if err := copyChart(filepath.Join(files(t, chart), "karpenter"), to, "1.15.1"); err != nil {
		t.Fatal(err)
	}
	got := read(t, to)
	for name, want := range map[string]string{
		"Chart.yaml":       "name: karpenter\nversion: 1.15.1\nappVersion: 1.15.1\n",
		"values.yaml":      "controller:\n  image:\n    tag: 1.15.1\n    digest: \"\"\n",
		"templates/a.yaml": "a: b\n",
	} {
		if string(got[name]) != want || len(got) != 3 {
			t.Errorf("%s: got %q of %d files, want %q", name, got[name], len(got), want)
		}
	}
	chart["karpenter/values.yaml"] += "sidecar:\n  image:\n    tag: 2\n"
	err := copyChart(filepath.Join(files(t, chart), "karpenter"), to, "1.15.1")
	if err == nil || !strings.Contains(err.Error(), "values.yaml has 2 lines like") {
		t.Errorf("got %v", err)
	}
}

// What is downloaded is recorded, and the recorded version of the core module is used again. The go command is a script here.
func TestObtain(t *testing.T) {
	root := files(t, map[string]string{
		"bin/go": "#!/bin/sh\n" + `echo "{\"Path\":\"${4%@*}\",\"Version\":\"${4#*@}\",\"Dir\":\"` +
			"$MODULE" + `\",\"Sum\":\"h1:new=\",\"GoModSum\":\"h1:mod=\"}"`,
		"go.mod": "require (\n\t" + coreModule + " v1.14.3\n)\n",
		"sums":   providerModule + " v1.14.3 h1:new=\n",
		"core":   coreModule + " v1.14.2/go.mod h1:mod=\n" + coreModule + " v1.14.2 h1:new=\n",
	})
	if err := os.Chmod(filepath.Join(root, "bin/go"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("MODULE", root)
	for file, core := range map[string]string{"none": "1.14.3", "sums": "1.14.3", "core": "1.14.2"} { // the recorded one
		got, err := obtain(filepath.Join(root, file), "1.14.3", "", "")
		if err != nil || got != (modules{provider: root, core: root, coreVersion: core}) {
			t.Errorf("%s: got %+v, %v", file, got, err)
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		want := ""
		for _, module := range []string{providerModule + " v1.14.3", coreModule + " v" + core} {
			want += module + " h1:new=\n" + module + "/go.mod h1:mod=\n"
		}
		if err != nil || string(text) != want {
			t.Errorf("%s: recorded %q, %v", file, text, err)
		}
	}
}
