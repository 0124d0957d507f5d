package resource

import (
	"cmp"
	"context"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Live is what was read of a resource.
type Live struct {
	// Name is the resource's path in the records and its name in reports: "role demo-karpenter".
	Name string
	// Found reports whether there is one, and Owned whether Sawhorse made it.
	Found, Owned bool
}

// Wanted is a resource as it should be.
type Wanted struct {
	// Unowned is the error for a resource that Sawhorse did not make. Without one, such a resource is left as it is.
	Unowned error
	// Create creates the resource with all its Parts.
	Create func(context.Context) error
	// Parts are repaired one by one, in this order. Their aspects begin behind the resource's name: "/tags". The part without
	// an aspect is the resource itself, where one call creates it and changes it. A Change without a subject is the resource's.
	Parts []Write
}

// Removal is how a resource is deleted.
type Removal struct {
	// Wait is how long to wait for a resource that is not shown yet.
	Wait time.Duration
	// First removes what must be gone before, if there is such a thing. It is no part of the report.
	First func(context.Context) error
	Do    func(context.Context) error
}

// There is the value of the aspect of something that is either there or not.
const There = "there"

// Ensure creates a resource if there is none, or if a read shows one that was deleted within the Lag. It repairs the parts of
// one that Sawhorse made, and leaves every other alone.
func (w *Writer) Ensure(ctx context.Context, live Live, wanted Wanted) error {
	switch {
	case live.Found && !live.Owned && wanted.Unowned != nil:
		return wanted.Unowned
	case !live.Found || w.Deleted(live.Name):
		return w.create(ctx, live.Name, wanted)
	case !live.Owned:
		return nil
	}
	for _, part := range wanted.Parts {
		part.Aspect = live.Name + part.Aspect
		part.Change.Subject = cmp.Or(part.Change.Subject, live.Name)
		if err := w.Write(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) create(ctx context.Context, name string, wanted Wanted) error {
	write := Write{
		Aspect: name, Value: There, Parts: map[string]string{}, Do: wanted.Create,
		Change: outcome.Change{Subject: name, Action: "created"},
	}
	for _, part := range wanted.Parts {
		if part.Aspect == "" {
			write.Value = part.Value
		} else {
			write.Parts[part.Aspect] = part.Value
		}
	}
	return w.Write(ctx, write)
}

// Delete deletes a resource that Sawhorse made. One that was created within the Lag and is not found is waited for, and one
// that was deleted within the Lag and is still found counts as deleted.
func (w *Writer) Delete(ctx context.Context, live Live, removal Removal) error {
	switch {
	case !live.Found && w.Created(live.Name):
		return NotShown(removal.Wait, live.Name)
	case !live.Found || !live.Owned || w.Deleted(live.Name):
		return nil
	}
	if removal.First != nil {
		reported := w.Changes
		err := removal.First(ctx)
		if w.Changes = reported; err != nil {
			return err
		}
	}
	return w.Write(ctx, Write{
		Aspect: live.Name, Read: There, Do: removal.Do, Change: outcome.Change{Subject: live.Name, Action: "deleted"},
	})
}

// Tags returns the part with a resource's tags. set sets all that are wanted, and is called if one of them is missing or has
// another value.
func Tags(live, wanted map[string]string, set func(context.Context) error) Write {
	hash := Hash(wanted)
	return Write{
		Aspect: "/tags", Read: Read(len(ownership.LackingTags(live, wanted)) == 0, hash), Value: hash,
		Change: outcome.Change{Action: "tagged"}, Do: set,
	}
}
