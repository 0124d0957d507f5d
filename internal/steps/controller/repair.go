package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// repair restores the objects of a release that are missing or were changed. It applies what the chart renders, not
// what the cluster has recorded, with the field manager that Helm used. It writes no revision, and nothing at all if
// nothing differs.
func (r *run) repair(ctx context.Context, wanted rendered) error {
	objects, err := wanted.objects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		applied, err := r.client.ApplyUnlabelled(ctx, object)
		if err != nil {
			return fmt.Errorf("release %s: repair: %w", wanted.name, err)
		}
		if applied.Changed() {
			r.progress.Changed("repaired", "%s", applied.Subject)
		}
		if len(applied.Contested) > 0 {
			r.progress.Happened("karpenter_enabled", "%s was changed by somebody else (%s) and is set back; stop that change, or it "+
				"will come and go with every pass.",
				applied.Subject, applied.Contested[0])
		}
	}
	return nil
}

// objects returns what Helm sends to the API server for a release: the rendered objects with Helm's own labels and
// annotations.
func (r rendered) objects() ([]plan.Object, error) {
	var objects []plan.Object
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(r.manifest)), 4096)
	for {
		var object plan.Object
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("release %s: manifest: %w", r.name, err)
		}
		meta, ok := object["metadata"].(map[string]any)
		if !ok {
			continue // an empty document
		}
		mark(meta, "labels", map[string]any{"app.kubernetes.io/managed-by": "Helm"})
		mark(meta, "annotations", map[string]any{"meta.helm.sh/release-name": r.name, "meta.helm.sh/release-namespace": ownership.Namespace})
		objects = append(objects, object)
	}
}

func mark(meta map[string]any, field string, marks map[string]any) {
	values, ok := meta[field].(map[string]any)
	if !ok {
		values = map[string]any{}
		meta[field] = values
	}
	maps.Copy(values, marks)
}
