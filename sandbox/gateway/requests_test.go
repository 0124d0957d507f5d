package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// ask calls an endpoint of the sandbox that is not part of AWS.
func ask(t *testing.T, method, path, body string) string {
	t.Helper()
	request := need[*http.Request](t)(http.NewRequest(method, sandbox.URL+path, strings.NewReader(body)))
	response := need[*http.Response](t)(http.DefaultClient.Do(request))
	defer response.Body.Close()
	text := string(need[[]byte](t)(io.ReadAll(response.Body)))
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return text
}

// An AWS event reaches the queue through the rule that the queue's policy names, and through no other.
func TestAnEventOfAWSReachesTheRulesTarget(t *testing.T) {
	ctx, queues, bus := context.Background(), sqs.NewFromConfig(sandbox.Config()), eventbridge.NewFromConfig(sandbox.Config())
	const policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
		`"Action":"sqs:SendMessage",` +
		`"Resource":"*","Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:events:us-east-1:000000000000:rule/events"}}}]}`
	queue := need[*sqs.CreateQueueOutput](t)(queues.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String("events"), Attributes: map[string]string{"Policy": policy},
	}))
	for _, rule := range []string{"others", "events"} {
		_ = need[*eventbridge.PutRuleOutput](t)(bus.PutRule(ctx, &eventbridge.PutRuleInput{
			Name: &rule, EventPattern: aws.String(`{"source":["aws.ec2"]}`),
		}))
		_ = need[*eventbridge.PutTargetsOutput](t)(bus.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &rule,
			Targets: []eventtypes.Target{{Id: aws.String("q"), Arn: aws.String("arn:aws:sqs:us-east-1:000000000000:events")}}}))
	}
	ask(t, http.MethodPost, "/_sandbox/events", `{"Source":"aws.ec2","DetailType":"Something","Detail":{"instance-id":"i-1"}}`)
	received := need[*sqs.ReceiveMessageOutput](t)(queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: queue.QueueUrl, WaitTimeSeconds: 5, MaxNumberOfMessages: 10,
	}))
	if len(received.Messages) != 1 {
		t.Fatalf("%d messages", len(received.Messages))
	}
	var message struct {
		Source string
		Kind   string `json:"detail-type"`
		Detail map[string]string
	}
	if err := json.Unmarshal([]byte(*received.Messages[0].Body), &message); err != nil {
		t.Fatal(err)
	}
	if message.Source != "aws.ec2" || message.Kind != "Something" || message.Detail["instance-id"] != "i-1" {
		t.Errorf("message %+v", message)
	}
}

func TestSQSHoldsADeletedName(t *testing.T) {
	ctx, queues := context.Background(), sqs.NewFromConfig(sandbox.Config())
	create := func() (string, error) {
		made, err := queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("held")})
		if err != nil {
			return "", err
		}
		return *made.QueueUrl, nil
	}
	remake := func() error {
		url := need[string](t)(create())
		_ = need[*sqs.DeleteQueueOutput](t)(queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url}))
		_, err := create()
		return err
	}
	want(t, "at first", remake(), "")
	ask(t, http.MethodPost, "/_sandbox/queue-hold?seconds=60", "")
	defer ask(t, http.MethodPost, "/_sandbox/queue-hold?seconds=0", "")
	want(t, "once asked for", remake(), "AWS.SimpleQueueService.QueueDeletedRecently")
}

func TestTheTrailHasWhatChangesSomething(t *testing.T) {
	ctx, queues := context.Background(), sqs.NewFromConfig(sandbox.Config())
	_ = need[*sqs.ListQueuesOutput](t)(queues.ListQueues(ctx, &sqs.ListQueuesInput{}))
	url := need[*sqs.CreateQueueOutput](t)(queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("trail")})).QueueUrl
	_ = need[*sqs.DeleteQueueOutput](t)(queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: url}))
	lines := strings.Split(strings.TrimSpace(ask(t, http.MethodGet, "/_sandbox/trail", "")), "\n")
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, " root sqs DeleteQueue /") {
		t.Errorf("the last line is %q", last)
	}
	at, _, _ := strings.Cut(lines[len(lines)-2], " ")
	if rest := ask(t, http.MethodGet, "/_sandbox/trail?since="+at, ""); strings.TrimSpace(rest) != lines[len(lines)-1] {
		t.Errorf("since %s: %q", at, rest)
	}
	for _, line := range lines {
		if strings.Contains(line, "ListQueues") {
			t.Errorf("a call that changes nothing: %q", line)
		}
	}
}
