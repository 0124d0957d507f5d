package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// The list of racks is one item collection of the table, with one item for each rack. Passes maintain it, and the
// schedule reads it. Listing racks from Parameter Store would page over all parameters of the account at 3 pages a
// second.

// listComplete is the sort key of the item which records that the list includes racks from before there was a list. It
// sorts before every rack name.
const listComplete = "#complete"

func listKey(rack string) item { return item{"pk": text(ownership.PartitionList), "sk": text(rack)} }

// Racks returns the sorted names of the listed racks.
func (s *Store) Racks(ctx context.Context) ([]string, error) {
	items, err := s.query(ctx, ownership.PartitionList, "a", end)
	if err != nil {
		return nil, fmt.Errorf("list of racks: read: %w", err)
	}
	var racks []string
	for _, values := range items {
		racks = append(racks, stringOf(values, "sk"))
	}
	return racks, nil
}

// Listed reports whether a rack is on the list.
func (s *Store) Listed(ctx context.Context, rack string) (bool, error) {
	values, err := s.get(ctx, listKey(rack))
	return values != nil, wrap(err, "list of racks: look for rack %s", rack)
}

// Exists reports whether a rack exists: it is on the list, or has parameters that no pass has read yet. Events may name
// any number of other racks, and for those nothing is stored, published or measured.
func (s *Store) Exists(ctx context.Context, reader ParameterReader, paths ownership.Paths, rack string) (bool, error) {
	listed, err := s.Listed(ctx, rack)
	if err != nil || listed {
		return listed, err
	}
	tree, err := ReadTree(ctx, reader, paths.Params(rack))
	return len(tree.Values) > 0, err
}

// Enlist adds a rack to the list. It may be repeated.
func (s *Store) Enlist(ctx context.Context, rack string) error {
	return wrap(s.put(ctx, listKey(rack), nil), "list of racks: add rack %s", rack)
}

// Delist removes a forgotten rack from the list.
func (s *Store) Delist(ctx context.Context, rack string) error {
	return wrap(s.remove(ctx, listKey(rack)), "list of racks: remove rack %s", rack)
}

// CompleteList adds the racks that have a lease to the list, because an earlier version of Sawhorse kept no list. It
// scans the whole table once; every later call is one read.
func (s *Store) CompleteList(ctx context.Context) error {
	done, err := s.get(ctx, listKey(listComplete))
	if err != nil || done != nil {
		return wrap(err, "list of racks: read")
	}
	pages := dynamodb.NewScanPaginator(s.DB, &dynamodb.ScanInput{
		TableName: &s.Name, FilterExpression: new("sk = :lease"), ProjectionExpression: new("pk"),
		ExpressionAttributeValues: item{":lease": text("lease")},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list of racks: read the table: %w", err)
		}
		for _, values := range page.Items {
			if err := s.Enlist(ctx, strings.TrimPrefix(stringOf(values, "pk"), partition(""))); err != nil {
				return err
			}
		}
	}
	return s.Enlist(ctx, listComplete)
}
