package rollout

import (
	"reflect"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

// images makes Karpenter find images behind a pool's alias, by IDs and names.
func (s *scene) images(pool string, images ...string) {
	s.Helper()
	var found []any
	for i := 0; i < len(images); i += 2 {
		found = append(found, object{"id": images[i], "name": images[i+1], "requirements": []any{
			object{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64"}}}})
	}
	s.Status(class(pool), object{"amis": found, "conditions": []any{condition("Ready", "True", "Ready", start)}})
}

// The status tells which image @latest is, since when, and how many nodes run an older one.
func TestWhichImageLatestIs(t *testing.T) {
	s := begin(t, "workload", "gpu")
	runs := func(name, pool, image string) {
		o := claim(name, pool, "1", "1")
		s.Create(o)
		s.Status(o, object{"imageID": image, "conditions": []any{
			condition("Launched", "True", "Launched", start), condition("Registered", "True", "Registered", start)}})
	}
	if got := s.after(5 * time.Minute).Latest; got != nil {
		t.Errorf("Karpenter has found none yet: %v", got)
	}
	const name = "amazon-eks-node-al2023-x86_64-standard-1.35-"
	s.images("workload", "ami-01", name+"v20260821", "ami-02", "amazon-eks-node-al2023-arm64-standard-1.35-v20260821")
	s.images("gpu", "ami-03", "amazon-eks-node-al2023-x86_64-nvidia-1.35-v20260821")
	runs("a", "workload", "ami-01")
	runs("b", "workload", "ami-02")
	runs("c", "gpu", "ami-03")
	want := []store.LatestImage{{Alias: "al2023@latest", Image: "v20260821", Since: stamp(10 * time.Minute)}}
	for _, minutes := range []time.Duration{10, 15} {
		if got := s.after(minutes * time.Minute).Latest; !reflect.DeepEqual(got, want) {
			t.Errorf("after %d minutes: %v, want %v", minutes, got, want)
		}
	}
	s.images("workload", "ami-04", name+"v20260828", "ami-05", "amazon-eks-node-al2023-arm64-standard-1.35-v20260828")
	want = []store.LatestImage{{Alias: "al2023@latest", Image: "v20260828", Since: stamp(20 * time.Minute), Older: 2}}
	if got := s.after(20 * time.Minute).Latest; !reflect.DeepEqual(got, want) {
		t.Errorf("after a new one: %v, want %v", got, want)
	}
}
