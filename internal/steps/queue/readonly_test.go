package queue

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// With clients that refuse to write, the step ends where it would make its first change. Whatever it would repair is
// found, and nothing else.
func TestReadOnly(t *testing.T) {
	for _, c := range []struct {
		what string
		harm func(*awsfake.Cloud)
		due  bool
	}{
		{"as it should be", func(*awsfake.Cloud) {}, false},
		{"a queue that is not there for every call", func(c *awsfake.Cloud) { c.Lag.Queues = time.Hour }, true},
		{"no queue", func(c *awsfake.Cloud) { delete(c.SQS.Queues, url) }, true},
		{"another retention", func(c *awsfake.Cloud) { c.SQS.Queues[url].Attributes["MessageRetentionPeriod"] = "60" }, true},
		{"no policy", func(c *awsfake.Cloud) { delete(c.SQS.Queues[url].Attributes, "Policy") }, true},
		{"not our queue", func(c *awsfake.Cloud) { c.SQS.Queues[url].Tags = nil }, true},
		{"a tag missing", func(c *awsfake.Cloud) { delete(c.SQS.Queues[url].Tags, "team") }, true},
		{"a tag missing on the rule", func(c *awsfake.Cloud) { c.Events.Rules[name].Tags = c.Events.Rules[name].Tags[:2] }, true},
		{"no rule", func(c *awsfake.Cloud) { delete(c.Events.Rules, name) }, true},
		{"rule disabled", func(c *awsfake.Cloud) { c.Events.Rules[name].State = types.RuleStateDisabled }, true},
		{"no target", func(c *awsfake.Cloud) { c.Events.Rules[name].Targets = nil }, true},
	} {
		cloud, q := begin()
		complete(t, cloud, q, true)
		c.harm(cloud)
		cloud.Forget()
		cloud.Refused = readonly.ErrWouldWrite
		progress, err := q.Run(t.Context(), wanted(true), "")
		due := errors.Is(err, readonly.ErrWouldWrite) || errors.As(err, new(*outcome.Rejected)) || progress.Wait > 0
		if due != c.due || !due && err != nil {
			t.Errorf("%s: due %v, %v", c.what, due, err)
		}
		if writes := cloud.Writes(); len(writes) > 0 {
			t.Errorf("%s: looking wrote %v", c.what, writes)
		}
	}
}
