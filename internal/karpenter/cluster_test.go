package karpenter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

// marker is a field that install adds to the CRDs of NodePool and EC2NodeClass. It tells which schema the API server
// uses, because it takes a changed CRD into use a moment later.
const marker = "markedVersion"

// resources are the kinds that plans have objects of.
var resources = map[string]schema.GroupVersionResource{
	"NodePool":     {Group: "karpenter.sh", Version: "v1", Resource: "nodepools"},
	"EC2NodeClass": {Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"},
}

// scene is an API server. Its CRDs stay when a test ends, since the next version's are installed over them; its objects do not.
type scene struct {
	*testing.T
	*k8stest.Cluster
	client  dynamic.Interface
	objects []*unstructured.Unstructured
}

func begin(t *testing.T) *scene {
	cluster := k8stest.New(t)
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, Cluster: cluster, client: client, objects: goldens(t)}
	t.Cleanup(func() {
		for _, object := range s.objects {
			s.Remove(object.Object)
		}
	})
	return s
}

// goldens reads the NodePools and EC2NodeClasses of all plans in the tests of package plan and those that `sawhorse plan`
// renders in its tests, each different one once.
func goldens(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	files, err := filepath.Glob("../plan/testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var raws []json.RawMessage
	for _, file := range files {
		var golden struct {
			Plan struct {
				NodePools struct{ Objects []json.RawMessage }
			}
		}
		if err := json.Unmarshal(contents(t, file), &golden); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		raws = append(raws, golden.Plan.NodePools.Objects...)
	}
	for text := range strings.SplitSeq(string(contents(t, "../../cmd/sawhorse/testdata/render.yaml")), "---\n") {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	seen := map[string]bool{}
	for _, raw := range raws {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if resources[object.GetKind()].Resource != "" && !seen[string(text)] {
			seen[string(text)] = true
			all = append(all, object)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d objects: the test has lost the goldens", len(all))
	}
	return all
}

func contents(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// crds returns a version's CRDs with the marker.
func (s *scene) crds(r karpenter.Release) (all []k8stest.Object) {
	s.Helper()
	texts, err := r.CRDs()
	if err != nil {
		s.Fatal(err)
	}
	for _, text := range texts {
		var crd k8stest.Object
		if err := yaml.Unmarshal(text, &crd); err != nil {
			s.Fatal(err)
		}
		kind, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
		if resources[kind].Resource != "" {
			versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
			field := map[string]any{"type": "string", "enum": []any{r.Version}}
			path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", marker}
			err := unstructured.SetNestedField(versions[0].(map[string]any), field, path...)
			if err == nil {
				err = unstructured.SetNestedSlice(crd, versions, "spec", "versions")
			}
			if err != nil {
				s.Fatal(err)
			}
		}
		all = append(all, crd)
	}
	return all
}

// create asks the API server to create the CRDs of a version, without doing so.
func (s *scene) create(r karpenter.Release) {
	s.Helper()
	for _, crd := range s.crds(r) {
		made, dryRun := &unstructured.Unstructured{Object: crd}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if _, err := s.client.Resource(definitionsResource).Create(context.Background(), made, dryRun); err != nil {
			s.Errorf("%s: %v", r.Version, err)
		}
	}
}

// install creates the CRDs of a version, or changes those that are there, and waits until the API server uses them.
func (s *scene) install(r karpenter.Release) {
	s.Helper()
	client := s.client.Resource(definitionsResource)
	for _, crd := range s.crds(r) {
		k8stest.Eventually(s.T, func() bool {
			made, err := &unstructured.Unstructured{Object: crd}, error(nil)
			if live := s.Get(crd); live == nil {
				_, err = client.Create(context.Background(), made, metav1.CreateOptions{})
			} else {
				live.Object["spec"] = crd["spec"]
				_, err = client.Update(context.Background(), live, metav1.UpdateOptions{})
			}
			if err != nil && !apierrors.IsConflict(err) { // the API server itself writes the status
				s.Fatalf("%s: %s: %v", r.Version, made.GetName(), err)
			}
			return err == nil
		})
	}
	for kind := range resources {
		marked := s.first(kind)
		if err := unstructured.SetNestedField(marked.Object, r.Version, "spec", marker); err != nil {
			s.Fatal(err)
		}
		var last error
		s.Cleanup(func() {
			if last != nil {
				s.Logf("%s: the last answer about %s: %v", r.Version, kind, last)
			}
		})
		k8stest.Eventually(s.T, func() bool {
			last = s.apply(marked, true)
			return last == nil
		})
	}
}

// first returns a copy of the first object of a kind.
func (s *scene) first(kind string) *unstructured.Unstructured {
	at := slices.IndexFunc(s.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	return s.objects[at].DeepCopy()
}

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// apply applies an object as the step nodepools does, and fails for fields that the CRD does not have.
func (s *scene) apply(object *unstructured.Unstructured, dryRun bool) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	force := true
	options := metav1.PatchOptions{FieldManager: "sawhorse", FieldValidation: metav1.FieldValidationStrict, Force: &force}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	client := s.client.Resource(resources[object.GetKind()])
	_, err = client.Patch(context.Background(), object.GetName(), types.ApplyPatchType, text, options)
	return err
}

// The CRDs of every version can be created on the real API server, and installed over those of each older version. Under
// them the objects of all golden plans apply, and those that were stored under an older version stay valid.
func TestCRDsOnTheAPIServer(t *testing.T) {
	all := karpenter.All()
	t.Run("create", func(t *testing.T) {
		s := begin(t)
		for _, r := range all {
			s.create(r)
		}
	})
	for i, r := range all {
		t.Run(r.Version, func(t *testing.T) {
			s := begin(t)
			s.install(r)
			s.goldensApply(r)
			s.schemaIsItsOwn(r)
		})
		for _, older := range all[:i] {
			t.Run(fmt.Sprintf("%s to %s", older.Version, r.Version), func(t *testing.T) {
				begin(t).upgrade(older, r)
			})
		}
	}
}

func (s *scene) goldensApply(r karpenter.Release) {
	s.Helper()
	for _, object := range s.objects {
		if err := s.apply(object, true); err != nil {
			s.Errorf("%s: %s/%s: %v", r.Version, object.GetKind(), object.GetName(), err)
		}
	}
}

// schemaIsItsOwn checks that the API server refuses what the version's schemas do not have: only those of 1.15 take any
// field of the kubelet.
func (s *scene) schemaIsItsOwn(r karpenter.Release) {
	s.Helper()
	wrong := s.objects[0].DeepCopy()
	wrong.Object["spec"].(map[string]any)["unknownField"] = "1"
	if err := s.apply(wrong, true); err == nil || !strings.Contains(err.Error(), "unknownField") {
		s.Errorf("%s: an unknown field: %v", r.Version, err)
	}
	class := s.first("EC2NodeClass")
	if err := unstructured.SetNestedField(class.Object, "50", "spec", "kubelet", "registryPullQPS"); err != nil {
		s.Fatal(err)
	}
	if err := s.apply(class, true); (err == nil) != (r.EC2NodeClass.Version == "v6") {
		s.Errorf("%s: an open kubelet: %v", r.Version, err)
	}
}

// upgrade stores objects under a version's CRDs and installs those of a newer one over them.
func (s *scene) upgrade(older, newer karpenter.Release) {
	s.Helper()
	s.install(older)
	stored := map[string]*unstructured.Unstructured{}
	for _, object := range s.objects {
		if stored[object.GetKind()+object.GetName()] != nil {
			continue
		}
		stored[object.GetKind()+object.GetName()] = object
		if err := s.apply(object, false); err != nil {
			s.Fatalf("%s/%s under %s: %v", object.GetKind(), object.GetName(), older.Version, err)
		}
	}
	s.install(newer)
	for _, object := range stored {
		live := s.Get(object.Object)
		if live == nil {
			s.Errorf("%s/%s is gone", object.GetKind(), object.GetName())
			continue
		}
		// Another manager's update of something else must not fail because of the spec.
		live.SetAnnotations(map[string]string{"upgraded": "true"})
		client, strict := s.client.Resource(resources[object.GetKind()]), metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}
		if _, err := client.Update(context.Background(), live, strict); err != nil {
			s.Errorf("%s/%s, stored under %s: %v", object.GetKind(), object.GetName(), older.Version, err)
		}
		if err := s.apply(object, false); err != nil {
			s.Errorf("%s/%s under %s: %v", object.GetKind(), object.GetName(), newer.Version, err)
		}
	}
}
