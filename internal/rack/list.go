package rack

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// The list of the racks is one item collection of the table, with an item for each rack. Passes keep it, and the schedule
// reads it: Parameter Store can list the racks only by paging over all parameters of the account, at 3 pages a second.

// listComplete is the sort key of the item that says that the list also has the racks that were there before there was
// a list. It sorts before every rack's name.
const listComplete = "#complete"

func listKey(rack string) item { return item{"pk": text(names.PartitionList), "sk": text(rack)} }

// Racks are the names of the listed racks, sorted.
func (s *Store) Racks(ctx context.Context) ([]string, error) {
	items, err := s.query(ctx, names.PartitionList, "a", end)
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

// Exists reports whether there is a rack of a name: it is on the list, or has parameters that no pass has read yet. Whoever may put
// events on the bus may name any number of others, and nothing is kept, published or measured for those.
func (s *Store) Exists(ctx context.Context, reader ParameterReader, paths names.Paths, rack string) (bool, error) {
	listed, err := s.Listed(ctx, rack)
	if err != nil || listed {
		return listed, err
	}
	tree, err := ReadTree(ctx, reader, paths.Params(rack))
	return len(tree.Values) > 0, err
}

// Enlist puts a rack on the list. It may be repeated.
func (s *Store) Enlist(ctx context.Context, rack string) error {
	return wrap(s.put(ctx, listKey(rack), nil), "list of racks: add rack %s", rack)
}

// Delist takes a forgotten rack off the list.
func (s *Store) Delist(ctx context.Context, rack string) error {
	return wrap(s.remove(ctx, listKey(rack)), "list of racks: remove rack %s", rack)
}

// CompleteList puts the racks on the list that have a lease and are not listed: an earlier version of Sawhorse kept no list.
// It reads the whole table, so it does that once; every later call is one read.
func (s *Store) CompleteList(ctx context.Context) error {
	done, err := s.get(ctx, listKey(listComplete))
	if err != nil || done != nil {
		return wrap(err, "list of racks: read")
	}
	var start item
	for {
		out, err := s.DB.Scan(ctx, &dynamodb.ScanInput{
			TableName: &s.Name, FilterExpression: new("sk = :lease"), ProjectionExpression: new("pk"),
			ExpressionAttributeValues: item{":lease": text("lease")}, ExclusiveStartKey: start,
		})
		if err != nil {
			return fmt.Errorf("list of racks: read the table: %w", err)
		}
		for _, values := range out.Items {
			if err := s.Enlist(ctx, strings.TrimPrefix(stringOf(values, "pk"), partition(""))); err != nil {
				return err
			}
		}
		if start = out.LastEvaluatedKey; len(start) == 0 {
			return s.Enlist(ctx, listComplete)
		}
	}
}
