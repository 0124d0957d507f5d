package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// rows adds n racks to the table, in its list of racks and with a lease, and with nothing else. A pass seems to hold each
// lease, so an audit of such a rack ends at once. Turning on as many real racks would take hours.
func (r *run) rows(ctx context.Context, n int) ([]string, error) {
	client := dynamodb.NewFromConfig(r.aws)
	table, err := r.table(ctx)
	if err != nil {
		return nil, err
	}
	put := func(ctx context.Context, item map[string]types.AttributeValue) error {
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item})
		return err
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	expires := &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 10)}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("row-%04d", i))
	}
	return names, each(ctx, names, 4, func(ctx context.Context, name string) error {
		for _, item := range []map[string]types.AttributeValue{
			{"pk": text("rack#" + name), "sk": text("lease"), "owner": text("load"), "expires": expires},
			{"pk": text("racks"), "sk": text(name)},
		} {
			if err := put(ctx, item); err != nil {
				return fmt.Errorf("load: rack %s: put: %w", name, err)
			}
		}
		return nil
	})
}

// table returns the name of the stack's table.
func (r *run) table(ctx context.Context) (string, error) {
	found, err := dynamodb.NewFromConfig(r.aws).ListTables(ctx, &dynamodb.ListTablesInput{})
	if err != nil {
		return "", fmt.Errorf("load: list tables: %w", err)
	}
	table := slices.IndexFunc(found.TableNames, func(name string) bool { return strings.HasPrefix(name, "Sawhorse") })
	if table < 0 {
		return "", fmt.Errorf("load: of the tables %q none is the stack's", found.TableNames)
	}
	return found.TableNames[table], nil
}

// audit calls the function audit for a rack as resync does.
func (r *run) audit(ctx context.Context, rack string) error {
	_, err := r.functions.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: aws.String("Sawhorse-audit:live"), InvocationType: lambdatypes.InvocationTypeEvent,
		Payload: fmt.Appendf(nil, `{"rack":%q}`, rack),
	})
	if err != nil {
		return fmt.Errorf("load: rack %s: audit: %w", rack, err)
	}
	return nil
}
