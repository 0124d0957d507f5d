package story

import (
	"encoding/json"
	"fmt"
	"time"
)

// report is the detail of an event about a pass, as docs/events.md describes it.
type report struct {
	Rack, Event, Error, Step, Reason, Request string

	Change          int64
	DryRun          bool
	Steps           []string
	DurationSeconds float64
	Pools           []struct {
		Pool  string
		Nodes int
	}
}

// subscription is a queue to which a rule sends Sawhorse's events of some kinds, as docs/events.md describes.
type subscription struct {
	name, url string
	kinds     []string
}

// The kinds of events about problems.
var problems = []string{"Rack Rejected", "Rack Reconcile Failed"}

// subscribe makes a queue, and a rule that sends it the events of some kinds.
func subscribe(s *Script, name string, kinds []string) subscription {
	policy := object{"Statement": object{
		"Effect": "Allow", "Principal": object{"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": "*",
	}}
	s.Type("aws sqs create-queue --queue-name " + name + " --attributes " + argument(object{"Policy": encoded(policy)}))
	url := s.Output("aws sqs get-queue-url --queue-name " + name + " --query QueueUrl --output text")
	arn := s.Output("aws sqs get-queue-attributes --attribute-names QueueArn --query Attributes.QueueArn --output text --queue-url " +
		url)
	rule := " --event-bus-name sawhorse --"
	s.Type("aws events put-rule" + rule + "name " + name + " --event-pattern " +
		argument(object{"source": []string{"sawhorse"}, "detail-type": kinds}))
	s.Type("aws events put-targets" + rule + "rule " + name + " --targets Id=queue,Arn=" + arn)
	return subscription{name, url, kinds}
}

// end deletes the rule and the queue.
func (q subscription) end(s *Script) {
	s.Type("aws events remove-targets --event-bus-name sawhorse --rule " + q.name + " --ids queue")
	s.Type("aws events delete-rule --event-bus-name sawhorse --name " + q.name)
	s.Type("aws sqs delete-queue --queue-url " + q.url)
}

// next waits for the next event, for at most a minute, and returns its detail.
func (q subscription) next(s *Script) report {
	for began := time.Now(); time.Since(began) < time.Minute; {
		if found, ok := q.poll(s, 5); ok {
			return found
		}
	}
	s.fail("queue %s: wanted an event %q, got none within a minute", q.name, q.kinds)
	return report{}
}

// poll returns the detail of the next event that arrives within so many seconds, if any.
func (q subscription) poll(s *Script, seconds int) (detail report, ok bool) {
	messages := JSON[[]struct{ Body, ReceiptHandle string }](s,
		fmt.Sprintf("aws sqs receive-message --queue-url %s --wait-time-seconds %d --query 'Messages || `[]`'", q.url, seconds))
	if len(messages) == 0 {
		return detail, false
	}
	var event struct{ Detail report }
	if err := json.Unmarshal([]byte(messages[0].Body), &event); err != nil {
		s.fail("queue %s: %s: %v", q.name, messages[0].Body, err)
	}
	s.Say("  %s", messages[0].Body)
	s.Output("aws sqs delete-message --queue-url " + q.url + " --receipt-handle " + quoted(messages[0].ReceiptHandle))
	return event.Detail, true
}
