package queue

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const (
	name = "demo-karpenter"
	arn  = "arn:aws:sqs:eu-central-1:123456789012:demo-karpenter"
)

var url = awsfake.QueueURL(name)

// wanted returns a plan whose documents are short: package plan tests what it renders.
func wanted(present bool) *plan.Plan {
	p := &plan.Plan{
		Rack:    "demo",
		Cluster: plan.Cluster{Name: "demo", ARN: awsfake.ClusterARN, Account: awsfake.Account, Region: awsfake.Region, Partition: "aws"},
		Queue: plan.Queue{Present: present, Name: name, ARN: arn, Rule: plan.Rule{Name: name},
			Tags: map[string]string{ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN, "team": "builders"}},
	}
	if present {
		p.Queue.Attributes = map[string]string{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"}
		p.Queue.Policy = plan.Document(`{"Statement":[{"Action":"sqs:*","Effect":"Deny","Resource":"` + arn + `"}],"Version":"2012-10-17"}`)
		p.Queue.Rule = plan.Rule{
			Name: name, Description: "of the test", Pattern: `{"source":["aws.health"]}`, Target: "queue",
		}
	}
	return p
}

func begin() (*awsfake.Cloud, *Step) {
	cloud := awsfake.New()
	records := &store.Store{DB: cloud.Table}
	return cloud, &Step{SQS: cloud.SQS, Rules: cloud.Events, Written: records, Now: cloud.Now}
}

// run calls the step until it no longer waits for a new queue. It compares the changes of all calls and returns the
// last progress.
func run(t *testing.T, q *Step, present bool, want ...string) outcome.Progress {
	t.Helper()
	var got []string
	for range 10 {
		progress, err := q.Run(t.Context(), wanted(present), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range progress.Changes {
			got = append(got, c.Action+" "+c.Subject)
		}
		if progress.Wait > 0 && progress.Wait <= creationLag {
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
		return progress
	}
	t.Fatal("not done after 10 calls")
	return outcome.Progress{}
}

// unchanged checks that a run writes nothing.
func unchanged(t *testing.T, cloud *awsfake.Cloud, q *Step, present bool) {
	t.Helper()
	cloud.Forget()
	run(t, q, present)
	if len(cloud.Writes()) > 0 {
		t.Errorf("writes %v", cloud.Writes())
	}
}

func TestCreatesOnceAndRemovesAll(t *testing.T) {
	cloud, q := begin()
	progress := run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
	want := map[string]string{"interruption_queue_url": url, "interruption_queue_arn": arn, "interruption_rule": name}
	if !maps.Equal(progress.Outputs, want) {
		t.Errorf("outputs %v, want %v", progress.Outputs, want)
	}
	awsfake.Documented(t, want)
	unchanged(t, cloud, q, true)

	cloud.Forget()
	progress = run(t, q, false, "deleted rule "+name, "deleted queue "+name)
	none := map[string]string{"interruption_queue_url": "", "interruption_queue_arn": "", "interruption_rule": ""}
	if !maps.Equal(progress.Outputs, none) {
		t.Errorf("outputs %v, want %v", progress.Outputs, none)
	}
	order := []string{"Events.RemoveTargets " + name, "Events.DeleteRule " + name, "SQS.DeleteQueue " + url}
	if got := cloud.Changes(); !slices.Equal(got, order) {
		t.Errorf("the rule goes before the queue: %v, want %v", got, order)
	}
	if len(cloud.SQS.Queues)+len(cloud.Events.Rules) > 0 {
		t.Errorf("left: %v %v", cloud.SQS.Queues, cloud.Events.Rules)
	}
	unchanged(t, cloud, q, false)
}

func TestQueueAndRuleAreThePlans(t *testing.T) {
	cloud, q := begin()
	run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
	queue := cloud.SQS.Queues[url]
	if queue.Attributes["MessageRetentionPeriod"] != "300" || queue.Attributes["SqsManagedSseEnabled"] != "true" {
		t.Errorf("attributes %v", queue.Attributes)
	}
	if !maps.Equal(queue.Tags, wanted(true).Queue.Tags) {
		t.Errorf("tags %v", queue.Tags)
	}
	planned, rule := wanted(true).Queue, cloud.Events.Rules[name]
	if policy := queue.Attributes["Policy"]; policy != planned.Policy.JSON() {
		t.Errorf("policy %s", policy)
	}
	if rule.Pattern != planned.Rule.Pattern.JSON() || len(rule.Targets) != 1 ||
		*rule.Targets[0].Arn != arn || *rule.Targets[0].Id != "queue" ||
		rule.State != types.RuleStateEnabled || len(rule.Tags) != 3 {
		t.Errorf("rule %+v", rule)
	}
}

func TestRepairsOnlyWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		what   string
		spoil  func(*awsfake.Cloud)
		want   string
		writes string
	}{
		{"retention", func(c *awsfake.Cloud) { c.SQS.Queues[url].Attributes["MessageRetentionPeriod"] = "60" }, "repaired queue " + name,
			"SQS.SetQueueAttributes " + url},
		{"policy", func(c *awsfake.Cloud) { c.SQS.Queues[url].Attributes["Policy"] = `{"Version":"2012-10-17"}` }, "repaired queue " + name,
			"SQS.SetQueueAttributes " + url},
		{"no policy", func(c *awsfake.Cloud) { delete(c.SQS.Queues[url].Attributes, "Policy") }, "repaired queue " + name,
			"SQS.SetQueueAttributes " + url},
		{"rule disabled", func(c *awsfake.Cloud) { c.Events.Rules[name].State = types.RuleStateDisabled }, "repaired rule " + name,
			"Events.PutRule " + name},
		{"pattern", func(c *awsfake.Cloud) { c.Events.Rules[name].Pattern = `{"source":["aws.ec2"]}` }, "repaired rule " + name,
			"Events.PutRule " + name},
		{"no target", func(c *awsfake.Cloud) { c.Events.Rules[name].Targets = nil }, "put target of rule " + name, "Events.PutTargets " + name},
		{"another queue as target", func(c *awsfake.Cloud) { c.Events.Rules[name].Targets[0].Arn = new("arn:other") },
			"put target of rule " + name, "Events.PutTargets " + name},
		{"another input", func(c *awsfake.Cloud) { c.Events.Rules[name].Targets[0].InputPath = new("$.detail") },
			"put target of rule " + name, "Events.PutTargets " + name},
		{"a tag of the queue gone", func(c *awsfake.Cloud) { delete(c.SQS.Queues[url].Tags, "team") }, "tagged queue " + name,
			"SQS.TagQueue " + url},
		{"a tag of the queue changed", func(c *awsfake.Cloud) { c.SQS.Queues[url].Tags["team"] = "others" }, "tagged queue " + name,
			"SQS.TagQueue " + url},
		{"a tag of the rule gone", func(c *awsfake.Cloud) { c.Events.Rules[name].Tags = c.Events.Rules[name].Tags[:2] },
			"tagged rule " + name, "Events.TagResource " + awsfake.RuleARN(name)},
		{"a tag of the rule changed", func(c *awsfake.Cloud) { c.Events.Rules[name].Tags[2].Value = new("others") }, "tagged rule " + name,
			"Events.TagResource " + awsfake.RuleARN(name)},
		{"the queue has gone", func(c *awsfake.Cloud) { delete(c.SQS.Queues, url) }, "created queue " + name, "SQS.CreateQueue " + url},
	} {
		t.Run(c.what, func(t *testing.T) {
			cloud, q := begin()
			run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
			c.spoil(cloud)
			cloud.Forget()
			run(t, q, true, c.want)
			if got := strings.Join(cloud.Changes(), ", "); got != c.writes {
				t.Errorf("writes %s, want %s", got, c.writes)
			}
			unchanged(t, cloud, q, true)
		})
	}
}

// A policy or pattern that is equal as JSON is not repaired, and attributes that Sawhorse does not set are left alone.
func TestLeavesWhatIsTheSameInOtherWords(t *testing.T) {
	cloud, q := begin()
	run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
	respelled := func(text string) string {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		spaced, _ := json.MarshalIndent(value, "", "   ")
		return string(spaced)
	}
	attributes := cloud.SQS.Queues[url].Attributes
	attributes["Policy"], attributes["VisibilityTimeout"] = respelled(attributes["Policy"]), "77"
	cloud.Events.Rules[name].Pattern = respelled(cloud.Events.Rules[name].Pattern)
	cloud.Events.Rules[name].Targets = append(cloud.Events.Rules[name].Targets, types.Target{Id: new("theirs"), Arn: new("arn:theirs")})
	cloud.SQS.Queues[url].Tags["theirs"] = "x"
	cloud.Events.Rules[name].Tags = append(cloud.Events.Rules[name].Tags, types.Tag{Key: new("theirs"), Value: new("x")})
	unchanged(t, cloud, q, true)
}

// Tags are added and changed but never removed: a tag that the rack no longer has may belong to somebody else by now.
func TestTagsFollowTheRack(t *testing.T) {
	cloud, q := begin()
	run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
	p := wanted(true)
	delete(p.Queue.Tags, "team")
	p.Queue.Tags["cost"] = "7"
	for _, want := range []int{2, 0} {
		cloud.Forget()
		if _, err := q.Run(t.Context(), p, ""); err != nil || len(cloud.Changes()) != want {
			t.Errorf("writes %v, want %d; %v", cloud.Changes(), want, err)
		}
	}
	tags := map[string]string{}
	for _, tag := range cloud.Events.Rules[name].Tags {
		tags[*tag.Key] = *tag.Value
	}
	want := map[string]string{ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN, "team": "builders", "cost": "7"}
	if !maps.Equal(tags, want) || !maps.Equal(cloud.SQS.Queues[url].Tags, want) {
		t.Errorf("rule %v, queue %v, want %v", tags, cloud.SQS.Queues[url].Tags, want)
	}
}

// SQS reserves a deleted queue's name for 60 s. The step waits for that instead of failing.
func TestWaitsForTheNameOfADeletedQueue(t *testing.T) {
	cloud, q := begin()
	run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
	run(t, q, false, "deleted rule "+name, "deleted queue "+name)
	progress := run(t, q, true)
	if progress.Wait <= 0 || progress.Wait > 30*time.Second || !strings.Contains(progress.Note, "60 s") {
		t.Errorf("%+v", progress)
	}
	if len(cloud.Events.Rules) > 0 {
		t.Error("there is a rule already, and no queue")
	}
	cloud.Pass(time.Minute)
	run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
}

func TestForeignQueueAndRule(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(*awsfake.Cloud)
	}{
		{"a queue without marks", func(c *awsfake.Cloud) { c.SQS.Queues[url].Tags = nil }},
		{"a queue of another cluster", func(c *awsfake.Cloud) { c.SQS.Queues[url].Tags[ownership.TagCluster] = "arn:other" }},
		{"a rule without marks", func(c *awsfake.Cloud) { c.Events.Rules[name].Tags = nil }},
		{"a rule of another rack", func(c *awsfake.Cloud) { c.Events.Rules[name].Tags[1].Value = new("other") }},
	} {
		t.Run(c.what, func(t *testing.T) {
			cloud, q := begin()
			run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
			c.spoil(cloud)
			cloud.Forget()
			_, err := q.Run(t.Context(), wanted(true), "")
			var rejected *outcome.Rejected
			if !errors.As(err, &rejected) || rejected.Problems[0].Parameter != "rack" || len(cloud.Writes()) > 0 {
				t.Errorf("%v, writes %v", err, cloud.Writes())
			}
			// On removal the resource that is not ours stays, and the other one is deleted.
			if _, err := q.Run(t.Context(), wanted(false), ""); err != nil {
				t.Fatal(err)
			}
			if left := len(cloud.SQS.Queues) + len(cloud.Events.Rules); left != 1 {
				t.Errorf("%d are left", left)
			}
		})
	}
}

func TestARefusedTargetIsAnError(t *testing.T) {
	cloud, q := begin()
	run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
	cloud.Events.Rules[name].Targets, cloud.Events.Refuse = nil, "no such queue"
	if _, err := q.Run(t.Context(), wanted(true), ""); err == nil || !strings.HasPrefix(err.Error(), "rule "+name+": ") ||
		!strings.Contains(err.Error(), "no such queue") {
		t.Errorf("%v", err)
	}
}

func TestATargetThatIsThrottled(t *testing.T) {
	cloud, q := begin()
	run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
	cloud.Events.Rules[name].Targets = nil
	cloud.Events.RefuseCode = "ThrottlingException"
	if _, err := q.Run(t.Context(), wanted(true), ""); outcome.Code(err) != "ThrottlingException" {
		t.Errorf("%v", err)
	}
}

// A rule is not deleted while EventBridge refuses to remove its target.
func TestARefusedRemovalIsAnError(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	cloud.Events.Refuse, cloud.Events.RefuseCode = "try again", "ConcurrentModificationException"
	_, err := q.Run(t.Context(), wanted(false), "")
	if outcome.Code(err) != "ConcurrentModificationException" || !strings.Contains(err.Error(), "remove targets: EventBridge refused it") {
		t.Errorf("%v", err)
	}
	if len(cloud.Events.Rules[name].Targets) != 1 {
		t.Errorf("%+v", cloud.Events.Rules[name])
	}
	cloud.Events.Refuse = ""
	run(t, q, false, "deleted rule "+name, "deleted queue "+name)
}

func TestInterrupted(t *testing.T) {
	state := func(cloud *awsfake.Cloud) any {
		text, err := json.Marshal([]any{cloud.SQS.Queues, cloud.Events.Rules})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, present := range []bool{true, false} {
		awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
			cloud, q := begin()
			if !present {
				run(t, q, true, "created queue "+name, "created rule "+name, "put target of rule "+name)
				cloud.Forget()
			}
			return cloud, func() (bool, error) {
				progress, err := q.Run(t.Context(), wanted(present), "")
				return progress.Wait == 0, err
			}
		}, state)
	}
}

// The error names the quota on rules per event bus and how to raise it; EventBridge's own text does not.
func TestTheBusIsFull(t *testing.T) {
	cloud, q := begin()
	cloud.Events.Full = true
	if progress, err := q.Run(t.Context(), wanted(true), ""); err != nil || progress.Wait == 0 {
		t.Fatalf("the queue is new: %+v, %v", progress, err)
	}
	_, err := q.Run(t.Context(), wanted(true), "")
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"rule demo-karpenter: put: the default event bus has as many rules as its quota allows (300 " +
		"in most regions, 100 in some)", "L-244521F2", "LimitExceededException"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %q", err, part)
		}
	}
	cloud.Events.Full = false
	run(t, q, true, "created rule "+name, "put target of rule "+name)
}
