package validate

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// input is what Parameter Store and the table have of a rack: its parameters, records and change requests, and whether the
// schedule visits it.
type input struct {
	tree    store.Tree
	records plan.Records
	changes []store.ChangeRequest
	listed  bool
	// force is that of the requests. With it, a version of Karpenter that failed is tried again.
	force bool
}

// read reads what is kept of a rack, side by side. Only a pass of the rack changes the records, and what others write
// meanwhile belongs to the next iteration.
func (v *Validate) read(ctx context.Context, rack string) (in input, err error) {
	reads, ctx := errgroup.WithContext(ctx)
	reads.Go(func() (err error) {
		in.tree, err = store.ReadTree(ctx, v.reader, v.paths.Params(rack))
		return err
	})
	reads.Go(func() (err error) {
		in.records, err = v.store.Records(ctx, rack)
		return err
	})
	reads.Go(func() (err error) {
		in.changes, err = v.store.Changes(ctx, rack)
		return err
	})
	reads.Go(func() (err error) {
		in.listed, err = v.store.Listed(ctx, rack)
		return err
	})
	return in, reads.Wait()
}
