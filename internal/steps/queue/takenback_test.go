package queue

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// What is set and unset within seconds is never left behind, although SQS and EventBridge show the state before: each
// aspect of the queue and the rule, and both together.
func TestTakenBack(t *testing.T) {
	for what, set := range map[string]func(*plan.Plan){
		"attributes": func(p *plan.Plan) { p.Queue.Attributes["MessageRetentionPeriod"] = "600" },
		"policy":     func(p *plan.Plan) { p.Queue.Policy = `{"Statement":[],"Version":"2012-10-17"}` },
		"tags":       func(p *plan.Plan) { p.Queue.Tags["team"] = "others" },
		"pattern":    func(p *plan.Plan) { p.Queue.Rule.Pattern = `{"source":["aws.ec2"]}` },
		"target":     func(p *plan.Plan) { p.Queue.ARN = "arn:aws:sqs:eu-central-1:123456789012:other" },
		"all":        func(p *plan.Plan) { *p = *wanted(false) },
	} {
		t.Run(what, func(t *testing.T) {
			awsfake.TakenBack(t, func() (*awsfake.Cloud, func(bool) (time.Duration, error)) {
				cloud, q := begin()
				return cloud, func(changed bool) (time.Duration, error) {
					p := wanted(true)
					if changed {
						set(p)
					}
					progress, err := q.Run(t.Context(), p, "")
					return progress.Wait, err
				}
			}, func(cloud *awsfake.Cloud) any {
				var all []any
				for url, queue := range cloud.SQS.Queues {
					all = append(all, url, queue.Attributes, queue.Tags)
				}
				for name, rule := range cloud.Events.Rules {
					tags := map[string]string{}
					for _, t := range rule.Tags {
						tags[*t.Key] = *t.Value
					}
					all = append(all, name, rule.Pattern, rule.State, slices.Sorted(maps.Keys(tags)), tags)
					for _, target := range rule.Targets {
						all = append(all, *target.Id, *target.Arn)
					}
				}
				return all
			})
		})
	}
}

// A rule that somebody deletes moments after it was made is made again at once, with its tags.
func TestARuleThatSomebodyDeletedAtOnce(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	delete(cloud.Events.Rules, name)
	progress, err := q.Run(t.Context(), wanted(true), "")
	if rule := cloud.Events.Rules[name]; err != nil || progress.Wait > 0 || rule == nil || len(rule.Tags) != 3 || len(rule.Targets) != 1 {
		t.Errorf("%+v, %v, %+v", rule, err, progress)
	}
	unchanged(t, cloud, q, true)
}
