package plan

import (
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Queue describes the interruption queue and the rule that sends events to it.
type Queue struct {
	// Present is false if both must be removed. They then have only their names and tags.
	Present bool   `json:"present"`
	Name    string `json:"name"`
	ARN     string `json:"arn"`
	// Attributes are the queue's attributes beside its policy, in SQS's names.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Policy is the queue's access policy.
	Policy Document `json:"policy,omitempty"`
	Rule   Rule     `json:"rule"`
	// Tags are those of the queue and the rule.
	Tags map[string]string `json:"tags"`
}

// Rule describes the EventBridge rule. It has one target, the queue.
type Rule struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Pattern is the event pattern.
	Pattern Document `json:"pattern,omitempty"`
	// Target is the ID of the target.
	Target string `json:"target,omitempty"`
}

// queue plans the interruption queue and its rule. The attributes and the policy are those of Karpenter's CloudFormation template:
// 300 s retention, SQS-managed encryption, and a policy that allows EventBridge to send and denies plain HTTP. One part is
// narrower: the template allows the rules of every account, and SQS itself, which sends nothing. Here only the rack's
// own rule may send, so that nobody else can fake interruptions.
func (b *builder) queue() {
	rack, c := b.config.Rack, b.plan.Cluster
	queue := Queue{Present: b.config.Enabled, Name: ownership.Queue(rack), Tags: b.tags(), Rule: Rule{Name: ownership.Rule(rack)}}
	queue.ARN = fmt.Sprintf("arn:%s:sqs:%s:%s:%s", c.Partition, c.Region, c.Account, queue.Name)
	queue.Tags[ownership.TagQueue] = ownership.TagQueueInterruption // one alarm finds the queues of all racks by it
	if queue.Present {
		queue.Attributes = map[string]string{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"}
		rule := fmt.Sprintf("arn:%s:events:%s:%s:rule/%s", c.Partition, c.Region, c.Account, queue.Rule.Name)
		queue.Policy = queuePolicy.with("${Queue}", queue.ARN, "${Rule}", rule)
		queue.Rule.Description = "Interruptions of EC2 instances, for Karpenter of rack " + rack
		queue.Rule.Pattern, queue.Rule.Target = b.karpenter.pattern, ownership.RuleTarget
	}
	b.plan.Queue = queue
}

var queuePolicy = document(map[string]any{
	"Version": "2012-10-17", "Id": "EC2InterruptionPolicy",
	"Statement": []map[string]any{
		{
			"Effect":    "Allow",
			"Principal": map[string]any{"Service": "events.amazonaws.com"},
			"Action":    "sqs:SendMessage",
			"Resource":  "${Queue}",
			"Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": "${Rule}"}},
		},
		{
			"Sid":       "DenyHTTP",
			"Effect":    "Deny",
			"Principal": "*",
			"Action":    "sqs:*",
			"Resource":  "${Queue}",
			"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
		},
	},
})
