package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

func put(client *ssm.Client, name, value string, change func(*ssm.PutParameterInput)) error {
	in := &ssm.PutParameterInput{Name: &name, Value: &value, Type: types.ParameterTypeString}
	if change != nil {
		change(in)
	}
	_, err := client.PutParameter(context.Background(), in)
	return err
}

func overwrite(in *ssm.PutParameterInput) { in.Overwrite, in.Type = aws.Bool(true), "" }

// listen creates a rule on a bus. Each call of the returned function waits for the next event and returns its detail.
func listen(t *testing.T, name, bus, pattern string) func() map[string]any {
	t.Helper()
	ctx, events, queues := context.Background(), eventbridge.NewFromConfig(sandbox.Config()), sqs.NewFromConfig(sandbox.Config())
	url := need[*sqs.CreateQueueOutput](t)(queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})).QueueUrl
	arn := "arn:aws:sqs:us-east-1:000000000000:" + name
	// The same policy as in production: EventBridge may send, and nobody without TLS.
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":%[1]q},
		{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":%[1]q,"Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`, arn)
	need[*sqs.SetQueueAttributesOutput](t)(queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: url, Attributes: map[string]string{string(sqstypes.QueueAttributeNamePolicy): policy}}))
	need[*eventbridge.PutRuleOutput](t)(events.PutRule(ctx, &eventbridge.PutRuleInput{
		Name: &name, EventBusName: &bus, EventPattern: &pattern,
	}))
	need[*eventbridge.PutTargetsOutput](t)(events.PutTargets(ctx, &eventbridge.PutTargetsInput{
		Rule: &name, EventBusName: &bus, Targets: []eventtypes.Target{{Id: aws.String("q"), Arn: &arn}}}))
	return func() map[string]any {
		t.Helper()
		out := need[*sqs.ReceiveMessageOutput](t)(queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 5}))
		if len(out.Messages) == 0 {
			t.Fatal("no event within 5 s")
		}
		need[*sqs.DeleteMessageOutput](t)(queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{
			QueueUrl: url, ReceiptHandle: out.Messages[0].ReceiptHandle,
		}))
		var event struct{ Detail map[string]any }
		if err := json.Unmarshal([]byte(*out.Messages[0].Body), &event); err != nil {
			t.Fatal(err)
		}
		return event.Detail
	}
}

func TestParameterChangesReachTheDefaultBus(t *testing.T) {
	ctx, client := context.Background(), ssm.NewFromConfig(sandbox.Config())
	next := listen(t, "changes", "default",
		`{"source":["aws.ssm"],"detail-type":["Parameter Store Change"],"detail":{"name":[{"prefix":"/changes/params/"}]}}`)
	expect := func(wanted map[string]any) {
		t.Helper()
		if got := next(); fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("event %v, want %v", got, wanted)
		}
	}
	name, other := "/changes/params/a", "/changes/params/b"
	want(t, "create", put(client, name, "1", func(in *ssm.PutParameterInput) { in.Description = aws.String("first") }), "")
	expect(map[string]any{"name": name, "operation": "Create", "type": "String", "description": "first"})
	want(t, "update", put(client, name, "2", overwrite), "")
	expect(map[string]any{"name": name, "operation": "Update", "type": "String", "description": "first"})
	want(t, "outside", put(client, "/changes/status", "1", nil), "")
	want(t, "refused", put(client, name, "", overwrite), "ValidationException")
	want(t, "list", put(client, other, "a,b", func(in *ssm.PutParameterInput) { in.Type = types.ParameterTypeStringList }), "")
	expect(map[string]any{"name": other, "operation": "Create", "type": "StringList"})
	need[*ssm.DeleteParameterOutput](t)(client.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &name}))
	expect(map[string]any{"name": name, "operation": "Delete", "type": "String", "description": "first"})
	need[*ssm.DeleteParametersOutput](t)(client.DeleteParameters(ctx, &ssm.DeleteParametersInput{
		Names: []string{other, "/changes/params/none"},
	}))
	expect(map[string]any{"name": other, "operation": "Delete", "type": "StringList"})
}

func TestPutEventsToACustomBus(t *testing.T) {
	ctx, events := context.Background(), eventbridge.NewFromConfig(sandbox.Config())
	need[*eventbridge.CreateEventBusOutput](t)(events.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: aws.String("own")}))
	next := listen(t, "custom", "own", `{"detail-type":["Rack Reconcile Requested"]}`)
	out := need[*eventbridge.PutEventsOutput](t)(events.PutEvents(ctx,
		&eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
			EventBusName: aws.String("own"), Source: aws.String("ops"), DetailType: aws.String("Rack Reconcile Requested"),
			Detail: aws.String(`{"rack":"demo"}`),
		}}}))
	if out.FailedEntryCount != 0 || next()["rack"] != "demo" {
		t.Errorf("put %+v", out.Entries)
	}
}

func TestAllowedPattern(t *testing.T) {
	client := ssm.NewFromConfig(sandbox.Config())
	pattern := func(p string) func(*ssm.PutParameterInput) {
		return func(in *ssm.PutParameterInput) { in.AllowedPattern = &p }
	}
	both := func(p string) func(*ssm.PutParameterInput) {
		return func(in *ssm.PutParameterInput) { overwrite(in); in.AllowedPattern = &p }
	}
	mismatch := "ParameterPatternMismatchException"
	want(t, "bad value", put(client, "/pattern", "30d", pattern(`^(unset|\d+h|Never)$`)), mismatch)
	want(t, "good value", put(client, "/pattern", "30h", pattern(`^(unset|\d+h|Never)$`)), "")
	want(t, "bad overwrite", put(client, "/pattern", "30d", overwrite), mismatch)
	want(t, "good overwrite", put(client, "/pattern", "31h", overwrite), "")
	want(t, "kept after an overwrite", put(client, "/pattern", "x", overwrite), mismatch)
	want(t, "digits are ASCII", put(client, "/pattern", "٣h", overwrite), mismatch)
	want(t, "another pattern", put(client, "/pattern", "x", both(`^x\z`)), "")
	want(t, "the very end", put(client, "/pattern", "x\n", overwrite), mismatch)
	want(t, "no regular expression", put(client, "/pattern", "x", both(`(`)), "InvalidAllowedPatternException")
	meta := need[*ssm.DescribeParametersOutput](t)(client.DescribeParameters(context.Background(), &ssm.DescribeParametersInput{
		ParameterFilters: []types.ParameterStringFilter{{Key: aws.String("Name"), Values: []string{"/pattern"}}}}))
	if got := *meta.Parameters[0].AllowedPattern; got != `^x\z` {
		t.Errorf("pattern %q", got)
	}
}

func TestWhatPutParameterRefuses(t *testing.T) {
	client := ssm.NewFromConfig(sandbox.Config())
	large, huge := strings.Repeat("x", 4097), strings.Repeat("x", 8193)
	tier := func(tier types.ParameterTier) func(*ssm.PutParameterInput) {
		return func(in *ssm.PutParameterInput) { in.Tier = tier }
	}
	want(t, "empty", put(client, "/r/empty", "", nil), "ValidationException")
	want(t, "4096", put(client, "/r/fits", large[:4096], nil), "")
	want(t, "4097", put(client, "/r/large", large, nil), "ValidationException")
	want(t, "4097 advanced", put(client, "/r/large", large, tier(types.ParameterTierAdvanced)), "")
	want(t, "4097 over advanced", put(client, "/r/large", large, overwrite), "")
	want(t, "downgrade",
		put(client, "/r/large", "x", func(in *ssm.PutParameterInput) { overwrite(in); in.Tier = types.ParameterTierStandard }),
		"ValidationException")
	want(t, "8193 advanced", put(client, "/r/huge", huge, tier(types.ParameterTierAdvanced)), "ValidationException")
	want(t, "intelligent", put(client, "/r/intelligent", large, tier(types.ParameterTierIntelligentTiering)), "")
	want(t, "exists", put(client, "/r/fits", "x", nil), "ParameterAlreadyExists")
	want(t, "type", put(client, "/r/fits", "x", func(in *ssm.PutParameterInput) {
		in.Overwrite, in.Type = aws.Bool(true), types.ParameterTypeStringList
	}), "HierarchyTypeMismatchException")
}

func TestAHundredVersions(t *testing.T) {
	ctx, client := context.Background(), ssm.NewFromConfig(sandbox.Config())
	want(t, "create", put(client, "/versions", "0", nil), "")
	for range 100 {
		want(t, "overwrite", put(client, "/versions", "x", overwrite), "")
	}
	history := need[*ssm.GetParameterHistoryOutput](t)(client.GetParameterHistory(ctx, &ssm.GetParameterHistoryInput{
		Name: aws.String("/versions"), MaxResults: aws.Int32(50),
	}))
	if got := history.Parameters[0].Version; got != 2 {
		t.Errorf("oldest version kept: %d, want 2", got)
	}
}

func TestReadingTheTree(t *testing.T) {
	ctx, client := context.Background(), ssm.NewFromConfig(sandbox.Config())
	for i := range 12 {
		want(t, "put", put(client, fmt.Sprintf("/tree/demo/params/p%02d", i), "1", nil), "")
	}
	want(t, "put", put(client, "/tree/demo/status", "1", nil), "")
	pages, names := 0, []string{}
	paginator := ssm.NewGetParametersByPathPaginator(client, &ssm.GetParametersByPathInput{
		Path: aws.String("/tree/demo"), Recursive: aws.Bool(true),
	})
	for ; paginator.HasMorePages(); pages++ {
		for _, p := range need[*ssm.GetParametersByPathOutput](t)(paginator.NextPage(ctx)).Parameters {
			names = append(names, *p.Name)
		}
	}
	if pages != 2 || len(names) != 13 {
		t.Errorf("%d pages, %d names", pages, len(names))
	}
	_, err := client.GetParametersByPath(ctx, &ssm.GetParametersByPathInput{Path: aws.String("/tree"), MaxResults: aws.Int32(11)})
	want(t, "page of 11", err, "ValidationException")

	find := func(key, option, value string) []string {
		t.Helper()
		out := need[*ssm.DescribeParametersOutput](t)(client.DescribeParameters(ctx, &ssm.DescribeParametersInput{MaxResults: aws.Int32(50),
			ParameterFilters: []types.ParameterStringFilter{{Key: &key, Option: &option, Values: []string{value}}}}))
		found := []string{}
		for _, p := range out.Parameters {
			found = append(found, *p.Name)
		}
		return found
	}
	if got := find("Name", "Contains", "demo/params/p0"); len(got) != 10 {
		t.Errorf("Name Contains: %v", got)
	}
	if got := find("Path", "Recursive", "/tree"); len(got) != 13 {
		t.Errorf("Path Recursive: %v", got)
	}
	if got := find("Path", "OneLevel", "/tree/demo"); !slices.Equal(got, []string{"/tree/demo/status"}) {
		t.Errorf("Path OneLevel: %v", got)
	}
}
