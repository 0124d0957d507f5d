package outcome

import (
	"context"
	"time"
)

// Deletions records when Sawhorse last deleted a resource of a rack, because AWS may still return the resource, or hold
// its name, for a while.
type Deletions interface {
	NoteDeletion(ctx context.Context, rack, resource string, at time.Time) error
	// Deletion returns the zero time if Sawhorse never deleted the resource.
	Deletion(ctx context.Context, rack, resource string) (time.Time, error)
}
