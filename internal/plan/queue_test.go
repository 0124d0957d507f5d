package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// The queue's attributes are those of Karpenter's CloudFormation template. Only the rack's own rule may send to it, and
// nobody over plain HTTP.
func TestQueueIsAsKarpenterWantsIt(t *testing.T) {
	const (
		arn  = "arn:aws:sqs:eu-central-1:123456789012:demo-karpenter"
		rule = "arn:aws:events:eu-central-1:123456789012:rule/demo-karpenter"
	)
	queue := outcome(t, "enable").Plan.Queue
	attributes := texts{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"}
	if queue.ARN != arn || !maps.Equal(queue.Attributes, attributes) {
		t.Errorf("queue %+v", queue)
	}
	var policy struct {
		Version, ID string
		Statement   []struct {
			Sid, Effect      string
			Principal        any
			Action, Resource string
			Condition        map[string]map[string]string
		}
	}
	if err := json.Unmarshal([]byte(queue.Policy.JSON()), &policy); err != nil {
		t.Fatal(err)
	}
	want := "{2012-10-17 EC2InterruptionPolicy [" +
		"{ Allow map[Service:events.amazonaws.com] sqs:SendMessage " + arn + " map[ArnEquals:map[aws:SourceArn:" + rule + "]]} " +
		"{DenyHTTP Deny * sqs:* " + arn + " map[Bool:map[aws:SecureTransport:false]]}]}"
	if got := fmt.Sprint(policy); got != want {
		t.Errorf("policy %s\nwant %s", got, want)
	}
}

// Karpenter reads five kinds of events. Without one of them it would learn of an interruption too late.
func TestTheRuleMatchesWhatKarpenterReads(t *testing.T) {
	rule := outcome(t, "enable").Plan.Queue.Rule
	var pattern struct {
		Source []string `json:"source"`
		Kinds  []string `json:"detail-type"`
	}
	if err := json.Unmarshal([]byte(rule.Pattern.JSON()), &pattern); err != nil {
		t.Fatal(err)
	}
	kinds := []string{
		"AWS Health Event", "EC2 Capacity Reservation Instance Interruption Warning", "EC2 Instance Rebalance Recommendation",
		"EC2 Instance State-change Notification", "EC2 Spot Instance Interruption Warning",
	}
	if slices.Sort(pattern.Kinds); !slices.Equal(pattern.Kinds, kinds) || !slices.Equal(pattern.Source, []string{"aws.health", "aws.ec2"}) {
		t.Errorf("pattern %v", rule.Pattern)
	}
	if rule.Name != "demo-karpenter" || rule.Target != "queue" {
		t.Errorf("rule %+v", rule)
	}
}
