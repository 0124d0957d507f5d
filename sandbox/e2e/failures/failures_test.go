// Package failures runs the end-to-end scripts about failures of a pass. Together with package e2e it is the end-to-end
// part of `make test`. Run one script by name, as in `make e2e NAME=Stopped`.
package failures

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-failures")

func TestMain(m *testing.M) { sandbox.Main(m) }

// The API server rejects a function without an access entry. A full pass repairs that.
func TestLockedOut(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.LockedOut)
}

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

// Events that arrive while a pass fails are served by the next iteration at once, and a failure does not loop. The
// schedule makes up for a lost event.
func TestFailing(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	since := time.Now()
	sandbox.Play(t, story.Failing)
	for n := range 40 { // an iteration fails a few tenths of a second after it has recorded what was requested
		sandbox.Write(t, map[string]string{"karpenter_cpu_limit": fmt.Sprint(150 + n)})
		time.Sleep(100 * time.Millisecond)
	}
	sandbox.Play(t, story.Mended)
	again := 0
	history, err := passes.Since(t.Context(), sandbox.AWS(t), since)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range history.Paths {
		again += strings.Count(strings.Join(path, " "), "ReportFailure Reported Release Again Enough Debounce Renew Validate")
	}
	t.Logf("%d failed iterations were followed by another at once", again)
	if again == 0 {
		t.Error("no iteration follows one that failed while a write arrived")
	}
	sandbox.Play(t, story.LostEvents)
}

// Events that name no rack, or that try to reach another rack, leave nothing behind.
func TestHostile(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Hostile)
}
