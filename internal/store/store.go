// Package store stores a rack's data: parameter tree, status and outputs in Parameter Store; lease, plan, applied state,
// baselines and runs in one DynamoDB table.
package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Table is the part of DynamoDB's API that the records need.
type Table interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// Store reads and writes the records in one table.
type Store struct {
	DB   Table
	Name string
}

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// plain returns a value's JSON as a text.
func plain(value any) types.AttributeValue { return text(string(canonical.JSON(value))) }

// packed compresses a value's JSON, because JSON parameters and their problems can exceed DynamoDB's 400 KB for an
// item.
func packed(value any) types.AttributeValue {
	var buffer bytes.Buffer // writing to it does not fail
	zip := gzip.NewWriter(&buffer)
	_, _ = zip.Write(canonical.JSON(value))
	_ = zip.Close()
	return &types.AttributeValueMemberB{Value: buffer.Bytes()}
}

// unpack reads what packed or plain wrote.
func unpack(values item, name string, into any) error {
	binary, ok := values[name].(*types.AttributeValueMemberB)
	if !ok {
		return json.Unmarshal([]byte(stringOf(values, name)), into)
	}
	zip, err := gzip.NewReader(bytes.NewReader(binary.Value))
	if err != nil {
		return err
	}
	return json.NewDecoder(zip).Decode(into)
}

// partition is the partition key of a rack's records.
func partition(rack string) string { return ownership.PartitionRack + rack }

// key is the key of one of a rack's records.
func key(rack, record string) item { return item{"pk": text(partition(rack)), "sk": text(record)} }

// get reads one item with strong consistency. It returns nil if there is none.
func (s *Store) get(ctx context.Context, key item) (item, error) {
	out, err := s.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.Name, Key: key, ConsistentRead: new(true)})
	if err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return out.Item, nil
}

// load reads an item of a rack and decodes one attribute of it. It reports whether there is such an item. what names the
// item in errors.
func (s *Store) load(ctx context.Context, key item, rack, attribute, what string, into any) (bool, error) {
	values, err := s.get(ctx, key)
	if err != nil || values == nil {
		return false, wrap(err, "rack %s: read %s", rack, what)
	}
	return true, wrap(unpack(values, attribute, into), "rack %s: decode %s", rack, what)
}

// end sorts after everything that may follow the prefix of a sort key.
const end = "~"

// query reads a partition's items with sort keys in a range, in order.
func (s *Store) query(ctx context.Context, partition, from, to string) ([]item, error) {
	var all []item
	pages := dynamodb.NewQueryPaginator(s.DB, &dynamodb.QueryInput{
		TableName:                 &s.Name,
		ConsistentRead:            new(true),
		KeyConditionExpression:    new("pk = :pk AND sk BETWEEN :from AND :to"),
		ExpressionAttributeValues: item{":pk": text(partition), ":from": text(from), ":to": text(to)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
	}
	return all, nil
}

// first reads the first items of a partition with sort keys in a range, at most this many, in the reverse order if backwards.
func (s *Store) first(ctx context.Context, partition, from, to string, most int32, backwards bool) ([]item, error) {
	out, err := s.DB.Query(ctx, &dynamodb.QueryInput{
		TableName:                 &s.Name,
		ConsistentRead:            new(true),
		KeyConditionExpression:    new("pk = :pk AND sk BETWEEN :from AND :to"),
		ExpressionAttributeValues: item{":pk": text(partition), ":from": text(from), ":to": text(to)},
		Limit:                     &most, ScanIndexForward: new(!backwards),
	})
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

func (s *Store) put(ctx context.Context, values item, condition *string) error {
	_, err := s.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.Name, Item: values, ConditionExpression: condition})
	return err
}

var placeholder = regexp.MustCompile(`#([a-z]+)`)

// updating returns the input that updates one item, under a condition unless that is "". In both expressions, #name stands
// for the attribute of that name, because DynamoDB reserves many words.
func (s *Store) updating(key item, update, condition string, values item) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{TableName: &s.Name, Key: key, UpdateExpression: &update, ExpressionAttributeValues: values}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	for _, match := range placeholder.FindAllStringSubmatch(update+" "+condition, -1) {
		if in.ExpressionAttributeNames == nil { // DynamoDB refuses an empty map
			in.ExpressionAttributeNames = map[string]string{}
		}
		in.ExpressionAttributeNames[match[0]] = match[1]
	}
	return in
}

func (s *Store) update(ctx context.Context, key item, update, condition string, values item) error {
	_, err := s.DB.UpdateItem(ctx, s.updating(key, update, condition, values))
	return err
}

func (s *Store) remove(ctx context.Context, key item) error {
	_, err := s.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.Name, Key: key})
	return err
}

// refused reports whether a condition failed.
func refused(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}

func stringOf(values item, name string) string {
	if v, ok := values[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func numberOf(values item, name string) int64 {
	var n int64
	if v, ok := values[name].(*types.AttributeValueMemberN); ok {
		_ = json.Unmarshal([]byte(v.Value), &n) // DynamoDB stores only valid numbers
	}
	return n
}

// wrap adds context to an error. It returns nil for nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
