package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/gateway/gatewaytest"
)

// faults arms faults, or returns the report if body is empty.
func faults(t *testing.T, body string) (status int, report fault.Report) {
	t.Helper()
	method := http.MethodPut
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(context.Background(), method, sandbox.URL+"/_sandbox/faults", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp := need[*http.Response](t)(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	if body == "" {
		if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
			t.Fatal(err)
		}
	}
	return resp.StatusCode, report
}

// Faults hit a function, which is identified by the name of its session. Other callers are not affected.
func TestAFunctionsCallGoesWrong(t *testing.T) {
	ctx, root := context.Background(), sqs.NewFromConfig(sandbox.Config())
	arn, name := role(t, "chaos"), aws.String("chaos")
	need[*iam.PutRolePolicyOutput](t)(iam.NewFromConfig(sandbox.Config()).PutRolePolicy(ctx,
		&iam.PutRolePolicyInput{RoleName: name, PolicyName: name,
			PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"*"}}`)}))
	session := need[*sts.AssumeRoleOutput](t)(sts.NewFromConfig(sandbox.Config()).AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: &arn, RoleSessionName: aws.String(gatewaytest.FunctionPrefix + "queue")})).Credentials
	function := sqs.NewFromConfig(sandbox.Config(*session.AccessKeyId, *session.SecretAccessKey, *session.SessionToken))

	if status, _ := faults(t, `[{"function":"queue","service":"sqs","action":"CreateQueue","nth":1,"kind":"lost"},
		{"function":"queue","service":"sqs","action":"CreateQueue","nth":2,"kind":"throttle"}]`); status != http.StatusNoContent {
		t.Fatal(status)
	}
	t.Cleanup(func() { faults(t, "[]") })
	if _, err := function.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("lost")}); err == nil {
		t.Error("an answer came")
	}
	need[*sqs.GetQueueUrlOutput](t)(root.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("lost")}))
	_, err := function.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("refused")})
	want(t, "throttled", err, "RequestThrottled")
	need[*sqs.CreateQueueOutput](t)(root.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("refused")}))
	need[*sqs.CreateQueueOutput](t)(function.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("third")}))
	_, report := faults(t, "")
	if len(report.Calls) != 1 || report.Calls[0].Count != 3 || len(report.Fired) != 2 {
		t.Errorf("%+v", report)
	}
	if status, _ := faults(t, `[{"function":"queue","nth":1,"kind":"flood"}]`); status != http.StatusBadRequest {
		t.Errorf("an unknown kind: %d", status)
	}
}

// function returns the configuration of a function whose role allows everything.
func function(t *testing.T, name string) aws.Config {
	t.Helper()
	ctx, arn := context.Background(), role(t, "function-"+name)
	need[*iam.PutRolePolicyOutput](t)(iam.NewFromConfig(sandbox.Config()).PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: aws.String("function-" + name), PolicyName: &name, PolicyDocument: aws.String(everything),
	}))
	session := need[*sts.AssumeRoleOutput](t)(sts.NewFromConfig(sandbox.Config()).AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: &arn, RoleSessionName: aws.String(gatewaytest.FunctionPrefix + name),
	})).Credentials
	return sandbox.Config(*session.AccessKeyId, *session.SecretAccessKey, *session.SessionToken)
}

// EKS accepts an update that then ends as Failed, and nothing has changed. The next one succeeds. A service refuses a call
// with the code that was ordered.
func TestAnUpdateOfEKSFailsAndCallsAreRefused(t *testing.T) {
	ctx, name := context.Background(), "failed-update"
	_, _ = cluster(t, name)
	config := function(t, "access")
	mine := eks.NewFromConfig(config)
	if status, _ := faults(t, `[
		{"function":"access","service":"eks","action":"UpdateClusterConfig","nth":1,"kind":"fail","code":"AccessDenied"},
		{"function":"access","service":"ssm","nth":1,"kind":"refuse","code":"AccessDeniedException"}]`); status != http.StatusNoContent {
		t.Fatal(status)
	}
	t.Cleanup(func() { faults(t, "[]") })
	for _, wanted := range []struct {
		status ekstypes.UpdateStatus
		mode   ekstypes.AuthenticationMode
	}{
		{ekstypes.UpdateStatusFailed, ekstypes.AuthenticationModeConfigMap},
		{ekstypes.UpdateStatusSuccessful, ekstypes.AuthenticationModeApiAndConfigMap},
	} {
		update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, mine, name, "API_AND_CONFIG_MAP")).Update
		for update.Status == ekstypes.UpdateStatusInProgress {
			time.Sleep(50 * time.Millisecond)
			update = need[*eks.DescribeUpdateOutput](t)(mine.DescribeUpdate(ctx, &eks.DescribeUpdateInput{
				Name: &name, UpdateId: update.Id,
			})).Update
		}
		now := need[*eks.DescribeClusterOutput](t)(mine.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})).Cluster
		if update.Status != wanted.status || now.AccessConfig.AuthenticationMode != wanted.mode {
			t.Errorf("update %s, mode %s, want %v", update.Status, now.AccessConfig.AuthenticationMode, wanted)
		}
		if failed := len(update.Errors) == 1 && update.Errors[0].ErrorCode == "AccessDenied"; failed != (wanted.status == "Failed") {
			t.Errorf("update %s: errors %+v", update.Status, update.Errors)
		}
	}
	get := func() error {
		_, err := ssm.NewFromConfig(config).GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"refused"}})
		return err
	}
	want(t, "the first call", get(), "AccessDeniedException")
	want(t, "the second call", get(), "")
}

// SSM's events are best effort. A script can order that the next ones of a rack's parameters are lost, repeated or late.
// The event of a status, which a function may write at any time, does not take the order's place.
func TestChangeEventsAreLostRepeatedAndLate(t *testing.T) {
	next := listen(t, "best-effort", "default", `{"source":["aws.ssm"],"detail":{"name":[{"prefix":"/best-effort/"}]}}`)
	for order, wanted := range map[string][]string{
		"drop": {"/params/b"}, "repeat": {"/params/a", "/params/a", "/params/b"}, "delay": {"/params/b", "/params/a"},
	} {
		resp := need[*http.Response](t)(http.Post(sandbox.URL+"/_sandbox/change-events?count=1&order="+order, "", nil))
		resp.Body.Close()
		rack := "/best-effort/" + order
		for _, name := range []string{"/status", "/params/a", "/params/b"} {
			if err := put(ssm.NewFromConfig(sandbox.Config()), rack+name, "x", nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range append([]string{"/status"}, wanted...) {
			if got := next()["name"]; got != rack+name {
				t.Errorf("%s: %v came, not %s", order, got, rack+name)
			}
		}
	}
}

// The state machine's own DynamoDB calls are counted and can fail, like those of functions. Its retries overcome that.
func TestTheStateMachinesCallGoesWrong(t *testing.T) {
	ctx, states, tables := context.Background(), sfn.NewFromConfig(sandbox.Config()), dynamodb.NewFromConfig(sandbox.Config())
	arn, table := role(t, "machine"), aws.String("machine")
	need[*dynamodb.CreateTableOutput](t)(tables.CreateTable(ctx,
		&dynamodb.CreateTableInput{TableName: table, BillingMode: dynamotypes.BillingModePayPerRequest,
			KeySchema: []dynamotypes.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: dynamotypes.KeyTypeHash}},
			AttributeDefinitions: []dynamotypes.AttributeDefinition{
				{AttributeName: aws.String("pk"), AttributeType: dynamotypes.ScalarAttributeTypeS},
			}}))
	machine := need[*sfn.CreateStateMachineOutput](t)(states.CreateStateMachine(ctx,
		&sfn.CreateStateMachineInput{Name: aws.String("machine"), RoleArn: &arn, Definition: aws.String(`{
		"QueryLanguage": "JSONata", "StartAt": "Add", "States": {"Add": {"Type": "Task",
			"Resource": "arn:aws:states:::dynamodb:updateItem", "TimeoutSeconds": 20, "End": true,
			"Arguments": {"TableName": "machine", "Key": {"pk": {"S": "n"}}, "UpdateExpression": "ADD n :one",
				"ExpressionAttributeValues": {":one": {"N": "1"}}},
			"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "BackoffRate": 1, "MaxAttempts": 1}]}}}`)}))
	for _, c := range []struct {
		kind   fault.Kind
		failed string // the error of the first try
		adds   string
	}{
		{fault.Error, "DynamoDB.InternalServerErrorException", "1"},
		{fault.Throttle, "DynamoDB.ProvisionedThroughputExceededException", "1"}, {fault.Lost, "DynamoDB.SdkClientException", "2"},
	} {
		if status, _ := faults(t, `[{"function":"state-machine","service":"dynamodb","action":"UpdateItem","nth":1,"kind":"`+string(c.kind)+
			`"}]`); status != http.StatusNoContent {
			t.Fatal(status)
		}
		t.Cleanup(func() { faults(t, "[]") })
		execution := need[*sfn.StartExecutionOutput](t)(states.StartExecution(ctx,
			&sfn.StartExecutionInput{StateMachineArn: machine.StateMachineArn})).ExecutionArn
		for is := sfntypes.ExecutionStatusRunning; is == sfntypes.ExecutionStatusRunning; time.Sleep(50 * time.Millisecond) {
			is = need[*sfn.DescribeExecutionOutput](t)(states.DescribeExecution(ctx,
				&sfn.DescribeExecutionInput{ExecutionArn: execution})).Status
		}
		failed := []string{}
		for _, e := range need[*sfn.GetExecutionHistoryOutput](t)(states.GetExecutionHistory(ctx,
			&sfn.GetExecutionHistoryInput{ExecutionArn: execution})).Events {
			if d := e.TaskFailedEventDetails; d != nil {
				failed = append(failed, *d.Error)
			}
		}
		item := need[*dynamodb.DeleteItemOutput](t)(tables.DeleteItem(ctx,
			&dynamodb.DeleteItemInput{TableName: table, ReturnValues: dynamotypes.ReturnValueAllOld,
				Key: map[string]dynamotypes.AttributeValue{"pk": &dynamotypes.AttributeValueMemberS{Value: "n"}}})).Attributes
		if adds := item["n"].(*dynamotypes.AttributeValueMemberN).Value; adds != c.adds || !slices.Equal(failed, []string{c.failed}) {
			t.Errorf("%s: %s added, failed with %v", c.kind, adds, failed)
		}
		if _, report := faults(t, ""); len(report.Calls) != 1 || report.Calls[0].Count != 2 || len(report.Fired) != 1 {
			t.Errorf("%s: %+v", c.kind, report)
		}
	}
}
