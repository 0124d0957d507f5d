package controller

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// The function is a cluster administrator. An attacker who can write Secrets in kube-system tries to make it create a
// ClusterRoleBinding and delete a ServiceAccount.
var (
	binding = k8stest.Object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": "forged"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}}}
	victim = k8stest.Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "victim", "namespace": "default"}}
)

// installed returns a rack with a working controller, whose release the tests then forge.
func installed(t *testing.T) *scene {
	s := begin(t)
	s.Create(node("one", "us-east-1a"))
	s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
	s.settle()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	s.RolledOut(deployment)
	s.Create(victim)
	t.Cleanup(func() { s.Remove(binding) })
	return s
}

// forge edits the newest revision of the controller's release in its Secret.
func (s *scene) forge(edit func(*release.Release)) {
	s.Helper()
	s.stored(func(text []byte) []byte {
		var r release.Release
		if err := json.Unmarshal(text, &r); err != nil {
			s.Fatal(err)
		}
		edit(&r)
		text, err := json.Marshal(r)
		if err != nil {
			s.Fatal(err)
		}
		return text
	})
}

// stored edits the content of the release's Secret as Helm reads it: compressed JSON.
func (s *scene) stored(edit func([]byte) []byte) {
	s.Helper()
	secret := k8stest.Object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "sh.helm.release.v1.karpenter.v1",
		"namespace": ownership.Namespace}}
	s.Change(secret, func(o *unstructured.Unstructured) {
		encoded, _, _ := unstructured.NestedString(o.Object, "data", "release")
		once, err := base64.StdEncoding.DecodeString(encoded) // the API's base64, which contains Helm's
		if err != nil {
			s.Fatal(err)
		}
		zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(once)))
		if err != nil {
			s.Fatal(err)
		}
		text, err := io.ReadAll(zip)
		if err != nil {
			s.Fatal(err)
		}
		var packed bytes.Buffer
		again := gzip.NewWriter(&packed)
		if _, err := again.Write(edit(text)); err != nil {
			s.Fatal(err)
		}
		if err := again.Close(); err != nil {
			s.Fatal(err)
		}
		_ = unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(packed.Bytes()))),
			"data", "release")
	})
}

// document returns an object as one more document of a manifest.
func document(object k8stest.Object) string {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	return "---\n" + string(text) + "\n"
}

// unharmed checks that the binding was not created and that the account still exists.
func (s *scene) unharmed() {
	s.Helper()
	if s.Get(binding) != nil {
		s.Error("a ClusterRoleBinding out of the release's Secret was made")
	}
	if s.Get(victim) == nil {
		s.Error("what the release's Secret names was deleted")
	}
}

func TestWhatARepairApplies(t *testing.T) {
	s := installed(t)
	s.forge(func(r *release.Release) {
		r.Manifest = strings.ReplaceAll(r.Manifest, "public.ecr.aws/karpenter/controller", "example.com/evil") + document(binding)
	})
	s.scale(0)
	s.run(PartRelease, "repaired Deployment/kube-system/karpenter")
	s.check(1)
	s.unharmed()

	t.Log("nor during a removal")
	s.plan.Controller.Release.Present = false
	s.Create(class)
	s.scale(0)
	s.run(PartServe, "repaired Deployment/kube-system/karpenter")
	s.check(1)
	s.unharmed()
}

func TestWhatAnUpgradeDeletes(t *testing.T) {
	s := installed(t)
	s.forge(func(r *release.Release) { r.Manifest += document(victim) })
	s.Create(node("two", "us-east-1b"))
	s.run(PartRelease, "updated: replicas=2 (was 1) release karpenter 1.10.0")
	s.check(2)
	s.unharmed()
}

func TestWhatARemovalDeletesAndRuns(t *testing.T) {
	s := installed(t)
	s.forge(func(r *release.Release) {
		r.Manifest += document(victim)
		r.Hooks = []*release.Hook{{Name: "forged", Kind: "ClusterRoleBinding", Path: "forged.yaml", Manifest: document(binding),
			Events: []release.HookEvent{release.HookPreDelete}}}
	})
	s.plan.Controller.Release.Present = false
	s.run(PartRelease, "uninstalled release karpenter")
	s.unharmed()
	if s.Get(deployment) != nil || s.revisions() != 0 {
		t.Error("the controller is there still")
	}
}
