package store

import (
	"context"
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// The list of racks is one item collection of the table, with one item for each rack. Passes maintain it, and the
// schedule reads it. Listing racks from Parameter Store would page over all parameters of the account at 3 pages a
// second.

func listKey(rack string) item { return item{"pk": text(ownership.PartitionList), "sk": text(rack)} }

// Racks returns the sorted names of the listed racks, and those whose last pass found them held.
func (s *Store) Racks(ctx context.Context) (racks, held []string, err error) {
	items, err := s.query(ctx, ownership.PartitionList, "a", end)
	if err != nil {
		return nil, nil, fmt.Errorf("list of racks: read: %w", err)
	}
	for _, values := range items {
		racks = append(racks, stringOf(values, "sk"))
		if stringOf(values, "held") != "" {
			held = append(held, stringOf(values, "sk"))
		}
	}
	return racks, held, nil
}

// Listed reports whether a rack is on the list, and whether its last pass found it held.
func (s *Store) Listed(ctx context.Context, rack string) (listed, held bool, err error) {
	values, err := s.get(ctx, listKey(rack))
	return values != nil, stringOf(values, "held") != "", wrap(err, "list of racks: look for rack %s", rack)
}

// Exists reports whether a rack exists, and whether it is on the list. One that is not may have parameters, or the parameter change,
// that no pass has read yet. Events may name any number of other racks, and for those nothing is stored, published or measured.
func (s *Store) Exists(ctx context.Context, reader RackReader, paths ownership.Paths, rack string) (exists, listed bool, err error) {
	listed, _, err = s.Listed(ctx, rack)
	if err != nil || listed {
		return listed, listed, err
	}
	tree, err := ReadTree(ctx, reader, paths.Params(rack))
	if err != nil || len(tree.Values) > 0 {
		return err == nil, false, err
	}
	change, err := ReadVersion(ctx, reader, paths.Change(rack))
	return change != nil, false, err
}

// Enlist adds a rack to the list, or records there whether its pass found it held. It may be repeated.
func (s *Store) Enlist(ctx context.Context, rack string, held bool) error {
	values := listKey(rack)
	if held {
		values["held"] = text("yes")
	}
	return wrap(s.put(ctx, values, nil), "list of racks: add rack %s", rack)
}

// Delist removes a forgotten rack from the list.
func (s *Store) Delist(ctx context.Context, rack string) error {
	return wrap(s.remove(ctx, listKey(rack)), "list of racks: remove rack %s", rack)
}
