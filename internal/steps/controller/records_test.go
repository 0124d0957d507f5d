package controller

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	ri "helm.sh/helm/v4/pkg/release"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// render returns the same manifest as Helm, and all kept revisions together are below the limit.
func TestRenderedAsHelmDoes(t *testing.T) {
	s := installed(t)
	for name, values := range map[string]map[string]any{
		ownership.ReleaseCRD: s.plan.Controller.CRDs.Values, ownership.ReleaseController: withReplicas(s.plan.Controller.Release, 1),
	} {
		wanted, err := render(name, ownership.KarpenterVersion, values)
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.helm.records.Driver.Get("sh.helm.release.v1." + name + ".v1")
		if err != nil {
			t.Fatal(err)
		}
		stored := found.(*release.Release)
		ours, err := wanted.objects()
		if err != nil {
			t.Fatal(err)
		}
		helms, err := rendered{name: name, manifest: stored.Manifest}.objects()
		if err != nil || len(ours) < len(helms) || !reflect.DeepEqual(ours, helms) {
			t.Errorf("%s: %d objects are rendered, and Helm has %d others, %v", name, len(ours), len(helms), err)
		}
		if text, err := json.Marshal(stored); err != nil || (history+1)*len(text) > largestRecords/2 {
			t.Errorf("%s: a revision has %d bytes, %v", name, len(text), err)
		}
	}
}

// A Secret may unpack to a thousand times its size, and Helm would read it all.
func TestRecordsThatUnpackToTooMuch(t *testing.T) {
	for _, c := range []struct {
		what     string
		unpacked []int
		fits     bool
	}{
		{"none", nil, true},
		{"as large as may be", []int{largestRecords}, true},
		{"a byte more", []int{largestRecords + 1}, false},
		{"too many", []int{largestRecords / 2, 1, largestRecords / 2}, false},
	} {
		var secrets []corev1.Secret
		for _, size := range c.unpacked {
			var zipped bytes.Buffer
			zip, _ := gzip.NewWriterLevel(&zipped, gzip.BestSpeed)
			_, _ = zip.Write(bytes.Repeat([]byte(" "), size))
			_ = zip.Close()
			secrets = append(secrets, record([]byte(base64.StdEncoding.EncodeToString(zipped.Bytes()))))
		}
		if err := fit(secrets); (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(),
			"secret kube-system/r: the releases in it and its like unpack to more than 32 MiB") {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	for _, text := range []string{"", "no base64!", base64.StdEncoding.EncodeToString([]byte("{}")),
		base64.StdEncoding.EncodeToString([]byte("\x1f\x8b\x08 and no more of gzip"))} {
		if err := fit([]corev1.Secret{record([]byte(text))}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func record(text []byte) corev1.Secret {
	return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ownership.Namespace, Name: "r"}, Data: map[string][]byte{"release": text}}
}

// A record may hold any JSON, so any part of a release may be missing.
func TestRecordsThatHoldNoRelease(t *testing.T) {
	info := &release.Info{}
	for what, stored := range map[string]*release.Release{
		"another object":     {Name: "other", Namespace: "default"},
		"no state":           {Chart: &chart.Chart{Metadata: &chart.Metadata{}}},
		"no chart":           {Info: info},
		"a chart of nothing": {Info: info, Chart: &chart.Chart{}},
	} {
		of := &records{Driver: holding{driver.NewMemory(), stored}, name: "karpenter"}
		if _, err := of.Get("a"); err == nil || !strings.Contains(err.Error(),
			"kubectl -n kube-system delete secrets -l owner=helm,name=karpenter") {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := of.Query(nil); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// holding is a driver with one release.
type holding struct {
	driver.Driver
	release *release.Release
}

func (h holding) Get(string) (ri.Releaser, error) { return h.release, nil }
func (h holding) Query(map[string]string) ([]ri.Releaser, error) {
	return []ri.Releaser{h.release}, nil
}
