package queue

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/sawhorse-io/sawhorse/internal/awsfake"
)

// Whatever the step would repair is not in order. The check itself changes nothing.
func TestInOrder(t *testing.T) {
	for _, c := range []struct {
		what string
		harm func(*awsfake.Cloud)
		want bool
	}{
		{"as it should be", func(*awsfake.Cloud) {}, true},
		{"a queue that is not there for every call", func(c *awsfake.Cloud) { c.Lag.Queues = time.Hour }, false},
		{"no queue", func(c *awsfake.Cloud) { delete(c.SQS.Queues, url) }, false},
		{"another retention", func(c *awsfake.Cloud) { c.SQS.Queues[url].Attributes["MessageRetentionPeriod"] = "60" }, false},
		{"no policy", func(c *awsfake.Cloud) { delete(c.SQS.Queues[url].Attributes, "Policy") }, false},
		{"not our queue", func(c *awsfake.Cloud) { c.SQS.Queues[url].Tags = nil }, false},
		{"a tag missing", func(c *awsfake.Cloud) { delete(c.SQS.Queues[url].Tags, "team") }, false},
		{"a tag missing on the rule", func(c *awsfake.Cloud) { c.Events.Rules[name].Tags = c.Events.Rules[name].Tags[:2] }, false},
		{"no rule", func(c *awsfake.Cloud) { delete(c.Events.Rules, name) }, false},
		{"rule disabled", func(c *awsfake.Cloud) { c.Events.Rules[name].State = types.RuleStateDisabled }, false},
		{"no target", func(c *awsfake.Cloud) { c.Events.Rules[name].Targets = nil }, false},
	} {
		cloud, q := begin()
		complete(t, cloud, q, true)
		c.harm(cloud)
		cloud.Forget()
		got, err := q.InOrder(t.Context(), wanted(true))
		if err != nil || got != c.want {
			t.Errorf("%s: in order %v, %v", c.what, got, err)
		}
		if writes := cloud.Writes(); len(writes) > 0 {
			t.Errorf("%s: looking wrote %v", c.what, writes)
		}
	}
}

func TestInOrderTellsWhenItCannotLook(t *testing.T) {
	cloud, q := begin()
	cloud.FailAt(1, awsfake.Throttling)
	if _, err := q.InOrder(t.Context(), wanted(true)); err == nil {
		t.Error("no error")
	}
}
