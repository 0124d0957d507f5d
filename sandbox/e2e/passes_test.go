package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/sandbox/passes"
)

// client is how a test calls the local AWS where the AWS CLI would be too slow.
func client(t *testing.T) aws.Config {
	t.Helper()
	environment := sandbox.Environment(t)
	setting := func(name string) string {
		for _, pair := range slices.Backward(environment) {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return os.Getenv(name)
	}
	return aws.Config{
		Region: setting("AWS_REGION"), BaseEndpoint: aws.String(setting("AWS_ENDPOINT_URL")),
		Credentials: credentials.NewStaticCredentialsProvider(setting("AWS_ACCESS_KEY_ID"), setting("AWS_SECRET_ACCESS_KEY"), ""),
	}
}

// rounds waits until no execution runs and returns the rounds since a time, in order. Two of one rack at once are an error.
func rounds(t *testing.T, since time.Time) []passes.Round {
	t.Helper()
	history, err := passes.Since(t.Context(), client(t), since)
	if err != nil {
		t.Fatal(err)
	}
	for _, both := range history.Overlaps() {
		t.Errorf("two rounds at once: %s", both)
	}
	return history.Rounds
}

// takeOver waits until a pass has written a parameter, and has its lease expire until the execution of another event has it. It
// gives the older execution.
func takeOver(t *testing.T, parameter, value string) (older string) {
	t.Helper()
	store, db := ssm.NewFromConfig(client(t)), dynamodb.NewFromConfig(client(t))
	tables, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || len(tables.TableNames) != 1 {
		t.Fatalf("tables %v: %v", tables, err)
	}
	table := &tables.TableNames[0]
	lease := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"}}
	for deadline := time.Now().Add(time.Minute); older == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no pass has written %s=%s", parameter, value)
		}
		is, err := store.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/sawhorse/racks/demo/params/" + parameter)})
		if err != nil || *is.Parameter.Value != value {
			continue // not there yet
		}
		item, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: table, Key: lease, ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		if owner, ok := item.Item["owner"].(*types.AttributeValueMemberS); ok {
			older = owner.Value
		}
	}
	for try := range 200 {
		if try%20 == 0 {
			request(t, `{"rack":"demo"}`)
		}
		_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: table, Key: lease, UpdateExpression: aws.String("SET expires = :past"),
			ConditionExpression: aws.String("#owner = :owner"), ExpressionAttributeNames: map[string]string{"#owner": "owner"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":past": &types.AttributeValueMemberN{Value: "1"}, ":owner": &types.AttributeValueMemberS{Value: older}},
		})
		var taken *types.ConditionalCheckFailedException
		if errors.As(err, &taken) {
			return older
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("no other execution takes the lease")
	return ""
}

// request asks for a pass.
func request(t *testing.T, detail string) {
	t.Helper()
	out, err := eventbridge.NewFromConfig(client(t)).PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
		EventBusName: aws.String("sawhorse"), Source: aws.String("test"), DetailType: aws.String("Rack Reconcile Requested"), Detail: &detail,
	}}})
	if err != nil || out.FailedEntryCount > 0 {
		t.Fatalf("%d events failed: %v", out.FailedEntryCount, err)
	}
}

// write puts parameters of the rack demo, all at once.
func write(t *testing.T, values map[string]string) {
	t.Helper()
	store := ssm.NewFromConfig(client(t))
	failed := make(chan error, len(values))
	for name, value := range values {
		go func() {
			_, err := store.PutParameter(context.Background(), &ssm.PutParameterInput{
				Name: aws.String("/sawhorse/racks/demo/params/" + name), Value: &value, Type: "String", Overwrite: aws.Bool(true),
			})
			if err != nil {
				err = fmt.Errorf("%s=%s: %w", name, value, err)
			}
			failed <- err
		}()
	}
	for range values {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}
