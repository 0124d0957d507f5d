// Package executions runs the end-to-end scripts of `make test` about executions that lose their lease or are stopped. Run
// one script by name, as in `make e2e NAME=Stopped`.
package executions

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-executions")

func TestMain(m *testing.M) { sandbox.Main(m) }

// Two executions hold one lease: the older one stops at its next step and changes nothing more. The test leaves
// parameters that the next script unsets.
func TestTakenOver(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, func(s *story.Teller) {
		story.TakenOver(s, func(parameter, value string) string { return takeOver(t, parameter, value) })
	})
}

// takeOver waits until a pass has written a parameter, then expires its lease until the execution of another event has
// taken it. It returns the ARN of the older execution.
func takeOver(t *testing.T, parameter, value string) (older string) {
	t.Helper()
	store, db := ssm.NewFromConfig(sandbox.AWS(t)), dynamodb.NewFromConfig(sandbox.AWS(t))
	tables, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || len(tables.TableNames) != 1 {
		t.Fatalf("tables %v: %v", tables, err)
	}
	table := &tables.TableNames[0]
	lease := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
	}
	for deadline := time.Now().Add(time.Minute); older == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no pass has written %s=%s", parameter, value)
		}
		is, err := store.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/sawhorse/racks/demo/params/" + parameter)})
		if err != nil || *is.Parameter.Value != value {
			continue // not written yet
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
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":past": &types.AttributeValueMemberN{Value: "1"}, ":owner": &types.AttributeValueMemberS{Value: older},
			},
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

// request requests a pass.
func request(t *testing.T, detail string) {
	t.Helper()
	out, err := eventbridge.NewFromConfig(sandbox.AWS(t)).PutEvents(t.Context(),
		&eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
			EventBusName: aws.String("sawhorse"), Source: aws.String("test"), DetailType: aws.String("Rack Reconcile Requested"),
			Detail: &detail,
		}}})
	if err != nil || out.FailedEntryCount > 0 {
		t.Fatalf("%d events failed: %v", out.FailedEntryCount, err)
	}
}

// A stopped execution is reported, and another one continues its work. A dry run that fails is answered.
func TestStopped(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Stopped)
}
