package karpenter_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// The versions are those that Sawhorse promises, in order, and the default one is among them.
func TestVersions(t *testing.T) {
	want := []string{"1.10.0", "1.12.1", "1.14.3", "1.15.1"}
	if got := karpenter.Versions(); !slices.Equal(got, want) {
		t.Errorf("the catalogue has %v, want %v", got, want)
	}
	if got := karpenter.Default(); got.Version != ownership.KarpenterVersion || got.Digest == "" {
		t.Errorf("the default is %s with the image %q; ownership.KarpenterVersion is %s", got.Version, got.Digest, ownership.KarpenterVersion)
	}
	_, err := karpenter.Find("1.11")
	if want := `karpenter "1.11" is no version that Sawhorse has; it has 1.10.0, 1.12.1, 1.14.3, 1.15.1`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, pair := range [][2]string{{"1.9.0", "1.10.0"}, {"1.10.0", "1.10.1"}, {"1.15.1", "2.0.0"}} {
		if karpenter.Compare(pair[0], pair[1]) >= 0 || karpenter.Compare(pair[1], pair[0]) <= 0 || karpenter.Compare(pair[0], pair[0]) != 0 {
			t.Errorf("%s is not older than %s", pair[0], pair[1])
		}
	}
}

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Every version has its facts, and the notes that people write.
func TestFactsAndNotes(t *testing.T) {
	for i, r := range karpenter.All() {
		if r.DigestSource == "" || (r.Digest == "") != strings.Contains(r.DigestSource, "not known: ") ||
			r.Digest != "" && !digest.MatchString(r.Digest) {
			t.Errorf("%s: digest %q from %q", r.Version, r.Digest, r.DigestSource)
		}
		if i > 0 && len(r.Upgrade) == 0 {
			t.Errorf("%s: notes.json does not say what an upgrade does", r.Version)
		}
		for _, note := range r.Upgrade {
			if note.Source == "" || !strings.HasSuffix(note.Text, ".") {
				t.Errorf("%s: note %q from %q", r.Version, note.Text, note.Source)
			}
		}
		if _, err := karpenter.Find(r.PoliciesOf); err != nil || karpenter.Compare(r.PoliciesOf, r.Version) > 0 {
			t.Errorf("%s: has the policies of %q", r.Version, r.PoliciesOf)
		}
		if r.Kubernetes.Oldest != "1.26" || !regexp.MustCompile(`^1\.3[5-9]$`).MatchString(r.Kubernetes.Newest) || r.Kubernetes.Source == "" {
			t.Errorf("%s: Kubernetes %+v", r.Version, r.Kubernetes)
		}
		if len(r.Events) != 5 || len(r.Calls) < 25 || r.NodePool.Version == "" || r.EC2NodeClass.Version == "" || r.Core == "" {
			t.Errorf("%s: facts are missing: %+v", r.Version, r)
		}
	}
}

// A range has both of its ends; what is not a version is not refused.
func TestKubernetesVersions(t *testing.T) {
	kubernetes := karpenter.Minors{Oldest: "1.26", Newest: "1.35"}
	for version, want := range map[string]bool{
		"1.25": false, "1.26": true, "1.35": true, "1.35.4": true, "1.36": false, "1.3": false, "1.100": false, "2.30": false,
		"": true, "new": true,
	} {
		if got := kubernetes.Lists(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// The facts that upgrades of running nodes depend on, one by one.
func TestHashes(t *testing.T) {
	for version, want := range map[string]struct {
		class   string
		besides []string
		covered string
	}{
		"1.10.0": {"v4", nil, "spec.kubelet.maxPods"},
		"1.12.1": {"v5", []string{"caBundle"}, "spec.kubelet.maxPods"},
		"1.14.3": {"v5", []string{"caBundle"}, "spec.kubelet.maxPods"},
		"1.15.1": {"v6", []string{"caBundle"}, "spec.kubelet"}, // an open map, hashed as its text
	} {
		r, err := karpenter.Find(version)
		if err != nil {
			t.Fatal(err)
		}
		class := r.EC2NodeClass
		if class.Version != want.class || !slices.Equal(class.Besides, want.besides) ||
			r.NodePool.Version != "v3" || len(r.NodePool.Besides) > 0 {
			t.Errorf("%s: %s besides %v, NodePool %s", version, class.Version, class.Besides, r.NodePool.Version)
		}
		if !slices.Contains(class.Covers, want.covered) || !slices.Contains(class.Covers, "spec.amiFamily") {
			t.Errorf("%s: the hash covers %v", version, class.Covers)
		}
		if !slices.Contains(class.Ignores, "spec.amiSelectorTerms") || !slices.Contains(r.NodePool.Ignores, "spec.template.spec.requirements") {
			t.Errorf("%s: the hashes ignore %v and %v", version, class.Ignores, r.NodePool.Ignores)
		}
	}
}

// Every field of the hashed parts in a version's CRD is in the hash or ignored by it, and the other way round: the paths
// are read from Go's types, and the CRD comes from another file.
func TestHashesKnowAllFields(t *testing.T) {
	for _, r := range karpenter.All() {
		for _, kind := range []struct {
			name, root string
			hash       karpenter.Hash
		}{{"nodepools.karpenter.sh", "spec.template", r.NodePool}, {"ec2nodeclasses.karpenter.k8s.aws", "spec", r.EC2NodeClass}} {
			schema := definitions(t, r)[kind.name].Spec.Versions[0].Schema.OpenAPIV3Schema
			known := slices.Concat(kind.hash.Covers, kind.hash.Ignores)
			for _, path := range known {
				if !strings.HasPrefix(path, kind.root+".") || !has(schema, path) {
					t.Errorf("%s: %s has no field %s", r.Version, kind.name, path)
				}
			}
			for _, field := range leaves(schema, "") {
				if strings.HasPrefix(field, kind.root+".") && !slices.ContainsFunc(known, func(path string) bool { return covers(path, field) }) {
					t.Errorf("%s: nothing says whether the hash of %s covers %s", r.Version, kind.name, field)
				}
			}
		}
	}
}

func covers(path, field string) bool {
	rest, ok := strings.CutPrefix(field, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// leaves returns the paths of the fields without fields of their own.
func leaves(schema *apiextensionsv1.JSONSchemaProps, path string) (all []string) {
	switch {
	case schema.Items != nil:
		return leaves(schema.Items.Schema, path+"[]")
	case len(schema.Properties) == 0:
		return []string{path}
	}
	for name, field := range schema.Properties {
		all = append(all, leaves(&field, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return all
}

// has reports whether a schema has a field.
func has(schema *apiextensionsv1.JSONSchemaProps, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(name, "[]")
		field, ok := schema.Properties[name]
		if !ok {
			return false
		}
		if schema = &field; list {
			if schema.Items == nil {
				return false
			}
			schema = schema.Items.Schema
		}
	}
	return true
}

// definitions decodes a version's CRDs.
func definitions(t *testing.T, r karpenter.Release) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	texts, err := r.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for name, text := range texts {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			t.Fatalf("%s: %s: %v", r.Version, name, err)
		}
		if definition.Name != name {
			t.Errorf("%s: %s defines %s", r.Version, name, definition.Name)
		}
		all[name] = definition
	}
	return all
}

// Each version has the CRDs of the version before it, and 1.14 has one more.
func TestCRDs(t *testing.T) {
	want := []string{"ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "nodepools.karpenter.sh"}
	for _, r := range karpenter.All() {
		if r.Version == "1.14.3" {
			want = append([]string{"capacitybuffers.autoscaling.x-k8s.io"}, want...)
		}
		var got []string
		for name := range definitions(t, r) {
			got = append(got, name)
		}
		if slices.Sort(got); !slices.Equal(got, want) || !slices.Equal(r.CRDNames, want) {
			t.Errorf("%s has the CRDs %v, its release.json names %v, want %v", r.Version, got, r.CRDNames, want)
		}
	}
}

// A chart has the version's name and tag, and no digest: that of the module's chart belongs to another release.
func TestChartsAreOfTheirVersion(t *testing.T) {
	for _, r := range karpenter.All() {
		for _, name := range []string{ownership.ReleaseController, ownership.ReleaseCRD} {
			files, err := r.Chart(name)
			if err != nil {
				t.Fatal(err)
			}
			if carried, err := karpenter.Digest(files); err != nil || r.ChartDigests[name] != carried || len(r.ChartDigests) != 2 {
				t.Errorf("%s: release.json has %v, the digest of %s is %s, %v", r.Version, r.ChartDigests, name, carried, err)
			}
			var chart struct{ Name, Version, AppVersion string }
			decode(t, files, "Chart.yaml", &chart)
			if chart.Name != name || chart.Version != r.Version || chart.AppVersion != r.Version {
				t.Errorf("%s: %+v", r.Version, chart)
			}
			if name == ownership.ReleaseCRD {
				continue
			}
			var values struct {
				Controller struct {
					Image struct{ Repository, Tag, Digest string }
				}
			}
			decode(t, files, "values.yaml", &values)
			if image := values.Controller.Image; image.Repository != ownership.ControllerImage || image.Tag != r.Version || image.Digest != "" {
				t.Errorf("%s: the chart's image is %+v", r.Version, image)
			}
		}
		if _, err := r.Chart("karpenter-core"); err == nil {
			t.Errorf("%s has a chart karpenter-core", r.Version)
		}
	}
}

func decode(t *testing.T, files fs.FS, name string, to any) {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	if err == nil {
		err = yaml.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// The folder has nothing that is not used: no file of another name, and no policies that no version names.
func TestNothingIsLeftOver(t *testing.T) {
	used, kubelets := map[string]bool{}, map[string]bool{}
	for _, r := range karpenter.All() {
		used[r.PoliciesOf], kubelets[r.Version] = true, r.Kubelet() != nil
	}
	folders, err := os.ReadDir("catalogue")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if folder.Name() == "NOTICE" {
			continue
		}
		if _, err := karpenter.Find(folder.Name()); err != nil {
			t.Error(err)
		}
		files, err := os.ReadDir(path.Join("catalogue", folder.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			known := []string{"karpenter", "karpenter-crd", "modules.sum", "notes.json", "release.json"}
			if used[folder.Name()] {
				known = append(known, "policies")
			}
			if kubelets[folder.Name()] {
				known = append(known, "kubelet.json")
			}
			if !slices.Contains(known, file.Name()) {
				t.Errorf("catalogue/%s/%s is used by nothing", folder.Name(), file.Name())
			}
		}
	}
}

// A version adds less than 1 MB to the zip of a function, which compresses its files.
func TestAVersionIsSmall(t *testing.T) {
	for _, version := range karpenter.Versions() {
		var size int64
		err := fs.WalkDir(os.DirFS("catalogue"), version, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				size += info.Size()
			}
			return err
		})
		if err != nil || size == 0 || size > 1<<20 {
			t.Errorf("version %s: %d bytes, %v", version, size, err)
		}
	}
}
