package awsfake

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item of a Table.
type Item = map[string]types.AttributeValue

// Table is one DynamoDB table with the keys pk and sk. It supports the expressions that Sawhorse uses: SET, REMOVE and
// ADD of attributes, and the conditions that check lists. It refuses all others.
type Table struct {
	*Calls
	// Items holds the items by "pk sk".
	Items map[string]Item

	deleting sync.Mutex
}

func newTable(calls *Calls) *Table { return &Table{Calls: calls, Items: map[string]Item{}} }

// maxItem is DynamoDB's approximate limit for an item, in bytes.
const maxItem = 400_000

// Text returns a string or number attribute of an item; "" if there is none.
func Text(item Item, name string) string {
	switch v := item[name].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

func place(key Item) string { return Text(key, "pk") + " " + Text(key, "sk") }

// made counts a call, unless its context has ended.
func (t *Table) made(ctx context.Context, operation, subject string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.call(operation, subject)
}

func (t *Table) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := t.made(ctx, "DynamoDB.GetItem", place(in.Key)); err != nil {
		return nil, err
	}
	if !value(in.ConsistentRead) {
		return nil, refuse("ValidationException", "the read of %s is not consistent: a pass must see its own writes", place(in.Key))
	}
	return &dynamodb.GetItemOutput{Item: copyOf(t.Items[place(in.Key)])}, nil
}

func (t *Table) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := t.made(ctx, "DynamoDB.PutItem", place(in.Item)); err != nil {
		return nil, err
	}
	if err := check(t.Items[place(in.Item)], value(in.ConditionExpression), nil, nil); err != nil {
		return nil, err
	}
	size := 0
	for name, v := range in.Item {
		size += len(name) + len(Text(in.Item, name))
		if b, ok := v.(*types.AttributeValueMemberB); ok {
			size += len(b.Value)
		}
	}
	if size > maxItem {
		return nil, refuse("ValidationException", "Item size has exceeded the maximum allowed size")
	}
	t.Items[place(in.Item)] = copyOf(in.Item)
	return &dynamodb.PutItemOutput{}, nil
}

func (t *Table) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := t.made(ctx, "DynamoDB.UpdateItem", place(in.Key)); err != nil {
		return nil, err
	}
	live := t.Items[place(in.Key)]
	if err := check(live, value(in.ConditionExpression), in.ExpressionAttributeNames, in.ExpressionAttributeValues); err != nil {
		return nil, err
	}
	item := copyOf(live)
	if item == nil {
		item = copyOf(in.Key)
	}
	if err := change(item, *in.UpdateExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues); err != nil {
		return nil, err
	}
	t.Items[place(in.Key)] = item
	return &dynamodb.UpdateItemOutput{Attributes: copyOf(item)}, nil
}

func (t *Table) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := t.made(ctx, "DynamoDB.DeleteItem", place(in.Key)); err != nil {
		return nil, err
	}
	t.deleting.Lock() // snapshots are deleted at the same time
	defer t.deleting.Unlock()
	if err := check(t.Items[place(in.Key)], value(in.ConditionExpression), in.ExpressionAttributeNames,
		in.ExpressionAttributeValues); err != nil {
		return nil, err
	}
	delete(t.Items, place(in.Key))
	return &dynamodb.DeleteItemOutput{}, nil
}

// Query supports "pk = :a AND sk BETWEEN :b AND :c", both directions and a limit, and returns at most two items per page.
func (t *Table) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	words := strings.Fields(*in.KeyConditionExpression)
	if len(words) != 9 || words[1] != "=" || words[4]+words[5] != "skBETWEEN" {
		return nil, refuse("ValidationException", "the fake does not know the condition %s", *in.KeyConditionExpression)
	}
	partition, from, to := Text(in.ExpressionAttributeValues, words[2]), Text(in.ExpressionAttributeValues, words[6]),
		Text(in.ExpressionAttributeValues, words[8])
	if err := t.made(ctx, "DynamoDB.Query", partition+" "+from); err != nil {
		return nil, err
	}
	out, most := &dynamodb.QueryOutput{}, 2
	if in.Limit != nil {
		most = min(most, int(*in.Limit))
	}
	names := slices.Sorted(maps.Keys(t.Items))
	if in.ScanIndexForward != nil && !*in.ScanIndexForward {
		slices.Reverse(names)
	}
	if in.ExclusiveStartKey != nil {
		names = names[slices.Index(names, place(in.ExclusiveStartKey))+1:]
	}
	for _, name := range names {
		if name < partition+" "+from || name > partition+" "+to {
			continue
		}
		if len(out.Items) == most {
			last := out.Items[most-1]
			out.LastEvaluatedKey = Item{"pk": last["pk"], "sk": last["sk"]}
			break
		}
		out.Items = append(out.Items, copyOf(t.Items[name]))
	}
	return out, nil
}
