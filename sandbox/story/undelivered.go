package story

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
)

// Undelivered takes a right from the function audit, and ticks the schedule: Lambda makes the audit's call three times, as its
// alias says, and then keeps it in the dead-letter queue. With the right back, the next audit of the same rack is in order.
func Undelivered(s *Script) {
	queue := s.Output("aws sqs list-queues --queue-name-prefix Sawhorse-Undelivered --query 'QueueUrls[0]' --output text")
	began := time.Now()
	s.Chapter("An audit that fails is tried again, and then kept", func() {
		deny(s, "audit", "dynamodb:GetItem")
		defer allow(s, "audit")
		tick(s)
		s.Await("the call that failed", func() string {
			for _, message := range JSON[[]struct{ Body, ReceiptHandle string }](s,
				"aws sqs receive-message --queue-url "+queue+" --wait-time-seconds 5 --query 'Messages || `[]`'") {
				s.Say("  %s", message.Body)
				s.Type("aws sqs delete-message --queue-url " + queue + " --receipt-handle " + quoted(message.ReceiptHandle))
				var kept struct{ RequestPayload struct{ Rack string } }
				if json.Unmarshal([]byte(message.Body), &kept) == nil && kept.RequestPayload.Rack == "demo" {
					return "kept"
				}
			}
			return "not in the queue"
		}, "kept", 2*time.Minute)
		s.Await("calls of audit", func() string { return fmt.Sprint(calls(s, "audit", began)) }, "3", time.Minute)
	})

	s.Chapter("With the right back", func() {
		auditInOrder(s, "The next audit finds what is in order.")
		s.Await("calls of audit", func() string { return fmt.Sprint(calls(s, "audit", began)) }, "4", time.Minute)
	})
}

// calls returns how many calls of a function its log reports since a time.
func calls(s *Script, function string, since time.Time) (n int) {
	lines, err := functionlog.Since(s.ctx, s.env, function, since)
	if err != nil {
		s.fail("%v", err)
	}
	for _, line := range lines {
		if _, is := line.Call(); is && line.Function == function {
			n++
		}
	}
	return n
}
