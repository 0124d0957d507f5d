package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Applied is the result of Apply for one object.
type Applied struct {
	// Subject is Kind/namespace/name.
	Subject string
	// Action is "created", "updated", "unchanged", or "terminating": the object is being deleted, and must be gone
	// before it can be created again.
	Action string
	// Contested has the fields that other managers hold with other values than the manifest's.
	Contested []Conflict
	// Adopted means that the object was one of a Helm release, and is not any more.
	Adopted bool
	// Live is the object after the call.
	Live *unstructured.Unstructured
}

// Actions of Applied.
const (
	Created     = "created"
	Updated     = "updated"
	Unchanged   = "unchanged"
	Terminating = "terminating"
)

// Conflict is a field that another manager holds with another value than the manifest's.
type Conflict struct {
	// Manager and Field are as the API server names them: argocd-controller, .spec.limits.cpu.
	Manager, Field string
	// Wanted is the manifest's value as JSON, or that of the whole manifest for a field of a list's element.
	Wanted string
	// Ruling is what was decided: Apply has set the field back, or left it.
	Ruling outcome.Ruling
}

// Changed reports whether something was written.
func (a Applied) Changed() bool { return a.Action == Created || a.Action == Updated }

// Apply creates or updates one object of the rack by server-side apply. If nothing differs, the API server writes
// nothing and keeps the resourceVersion. Fields of other managers stay, unless they contradict the manifest. If an
// object of that name exists without the rack's label, the error is an *Unmanaged.
func (c *Client) Apply(ctx context.Context, rack string, manifest plan.Object) (Applied, error) {
	object, live, kind, err := c.read(ctx, manifest)
	if err != nil {
		return Applied{}, err
	}
	if owner := object.GetLabels()[ownership.TagRack]; owner != rack {
		return Applied{}, fmt.Errorf("%s: apply: the manifest carries %s=%q and the rack is %s", Subject(object),
			ownership.TagRack, owner, rack)
	}
	if err := Owned(live, rack); err != nil {
		return Applied{}, err
	}
	return c.write(ctx, kind, live, object)
}

// GetLike reads the object with a manifest's kind and name. It returns nil if there is none.
func (c *Client) GetLike(ctx context.Context, manifest plan.Object) (*unstructured.Unstructured, error) {
	_, live, _, err := c.read(ctx, manifest)
	return live, err
}

// read decodes a manifest, and reads the live object with its kind and name. live is nil if there is none.
func (c *Client) read(ctx context.Context, manifest plan.Object) (object, live *unstructured.Unstructured, kind Kind, err error) {
	if object, kind, err = decode(manifest); err == nil {
		live, err = c.Get(ctx, kind, object.GetNamespace(), object.GetName())
	}
	return object, live, kind, err
}

// Owned returns an *Unmanaged error if the object exists and does not have the rack's label.
func Owned(live *unstructured.Unstructured, rack string) error {
	if live == nil || ownership.OwnedObject(live.GetLabels(), rack) {
		return nil
	}
	return &Unmanaged{Subject: Subject(live), Owner: live.GetLabels()[ownership.TagRack]}
}

func (c *Client) write(ctx context.Context, kind Kind, live, object *unstructured.Unstructured) (Applied, error) {
	applied := Applied{Subject: Subject(object), Action: Created, Live: live}
	if live != nil {
		applied.Action = Updated
		if live.GetDeletionTimestamp() != nil {
			applied.Action = Terminating
			return applied, nil
		}
	}
	if c.readOnly {
		return compare(live, object)
	}
	removed, err := c.removed(ctx, live, object)
	if err != nil {
		return applied, err
	}
	if removed != nil && !removed.Ruling.Write {
		applied.Action, applied.Contested = Unchanged, []Conflict{*removed}
		return applied, nil
	}
	result, err := c.patch(ctx, kind, object, false)
	if apierrors.IsConflict(err) {
		result, applied.Contested, err = c.settle(ctx, kind, object, conflicts(err))
	}
	if err != nil {
		return applied, fmt.Errorf("%s: apply: %w", applied.Subject, err)
	}
	if live != nil && live.GetResourceVersion() == result.GetResourceVersion() {
		applied.Action = Unchanged
	}
	applied.Live = result
	if removed != nil {
		applied.Contested = append(applied.Contested, *removed)
	}
	return applied, c.recordWhole(ctx, object, removed)
}

func (c *Client) patch(ctx context.Context, kind Kind, object *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	body, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return c.in(kind, object.GetNamespace()).Patch(ctx, object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: ownership.FieldManager, Force: &force})
}

// decode copies the manifest through JSON, so that its numbers have the types that the API machinery expects.
func decode(manifest plan.Object) (*unstructured.Unstructured, Kind, error) {
	body, err := json.Marshal(manifest)
	if err != nil {
		return nil, Kind{}, fmt.Errorf("manifest: encode: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, Kind{}, fmt.Errorf("manifest: decode: %w", err)
	}
	kind, err := kindOf(object)
	return object, kind, err
}

// conflicts returns the managers and fields that a conflict names.
func conflicts(err error) (held []Conflict) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			conflict := Conflict{Manager: cause.Message, Field: cause.Field}
			if quoted := strings.Split(cause.Message, `"`); len(quoted) > 1 { // conflict with "argocd-controller" using apps/v1
				conflict.Manager = quoted[1]
			}
			held = append(held, conflict)
		}
	}
	return held
}
