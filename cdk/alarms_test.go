package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/pass/resync"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// Passes that have nothing to report do not write these metrics, so no alarm may depend on them: it would have no data
// for days.
func TestNoAlarmDependsOnMetricsOfReports(t *testing.T) {
	for id, alarm := range production.all("AWS::CloudWatch::Alarm") {
		for _, name := range []string{metrics.OutOfLine, metrics.Changes, metrics.Seconds, metrics.Dimension} {
			p := alarm.Properties
			if p["MetricName"] == name || strings.Contains(text(p["Metrics"])+text(p["Dimensions"]), `"`+name+`"`) {
				t.Errorf("alarm %s depends on %s", id, name)
			}
		}
	}
}

// hours are four hours of a deployment, and the one before them.
const before, hours = -60, 240

// deployment is a deployed stack whose metrics are counted.
type deployment struct {
	*cloudWatch
	template
	// tick and look are the minutes between two calls of resync and of rollout, rounds those between two audits of a rack.
	tick, look, rounds int

	cloud  *awsfake.Cloud
	resync *resync.Resync
	log    *bytes.Buffer
	clock  time.Time
}

func deployed(t *testing.T, of template) *deployment {
	t.Helper()
	d := &deployment{template: of, cloud: awsfake.New(), log: new(bytes.Buffer), cloudWatch: &cloudWatch{
		T: t, begin: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), values: map[metric]map[int][]float64{}, tags: map[string]map[string]string{},
	}}
	d.tick, d.look = d.rate("ResyncSchedule"), d.rate("RolloutSchedule")
	_, f := of.named("AWS::Lambda::Function", "Resync")
	number := func(variable string) int {
		n, err := strconv.Atoi(at(f.Properties, "Environment", "Variables", variable).(string))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	d.rounds = number("SAWHORSE_RESYNC_MINUTES")
	d.resync = &resync.Resync{
		Functions: d.cloud.Lambda, Store: &store.Store{DB: d.cloud.Table, Name: "sawhorse"}, Metrics: d.writer("Resync"), Now: d.now,
		Parameters: d.cloud.SSM,
		Interval:   time.Duration(number("SAWHORSE_RESYNC_MINUTES")) * time.Minute, Slots: number("SAWHORSE_RESYNC_SLOTS"),
	}
	return d
}

// copy returns a deployment with the same metrics so far, to which others may be added.
func (d *deployment) copy() *deployment {
	other, counted := *d, *d.cloudWatch
	counted.values, counted.tags = map[metric]map[int][]float64{}, maps.Clone(counted.tags)
	for m, values := range d.values {
		counted.values[m] = maps.Clone(values)
	}
	other.cloudWatch = &counted
	return &other
}

func (d *deployment) now() time.Time { return d.clock }

func (d *deployment) at(minute int) { d.clock = d.begin.Add(time.Duration(minute) * time.Minute) }

// rate returns the minutes between two calls of a schedule.
func (d *deployment) rate(schedule string) (minutes int) {
	_, r := d.named("AWS::Scheduler::Schedule", schedule)
	if _, err := fmt.Sscanf(r.Properties["ScheduleExpression"].(string), "rate(%d minute", &minutes); err != nil {
		d.Fatal(err)
	}
	return minutes
}

// writer writes metrics as a function does that the template has configured.
func (d *deployment) writer(function string) metrics.Writer {
	_, f := d.named("AWS::Lambda::Function", function)
	return metrics.Writer{Out: d.log, Now: d.now, Namespace: at(f.Properties, "Environment", "Variables", "SAWHORSE_METRICS").(string)}
}

// of returns the name of a function, or the ARN of the state machine.
func (d *deployment) of(name string) string {
	if name == "Machine" {
		id, _ := d.named("AWS::StepFunctions::StateMachine", name)
		return d.arn(id)
	}
	id, _ := d.named("AWS::Lambda::Function", name)
	return d.name(id)
}

// lives plays the hours. held are the minutes in which one pass holds its rack, missing those in which the schedule does
// not tick, degraded those in which a pool is degraded, and unseen those without node checks.
func (d *deployment) lives(held, missing, degraded, unseen span) {
	d.must(d.resync.Store.Enlist(d.Context(), "demo", false))
	passes, looks := d.writer("Report"), d.writer("Rollout")
	for minute := before; minute < hours; minute++ {
		d.at(minute)
		d.lease(held, minute)
		if minute%d.tick == 0 && !missing.has(minute) {
			_, err := d.resync.Run(d.Context(), resync.Event{})
			d.must(err)
		}
		if minute%d.look == 0 && !unseen.has(minute) {
			d.publish(minute, "AWS/Lambda Invocations", d.of("Rollout"), 1)
			d.publish(minute, "AWS/Lambda Errors", d.of("Rollout"), 0)
			var racks []string
			if degraded.has(minute) {
				racks = []string{"demo"}
			}
			d.must(looks.Degraded(racks, nil))
		}
		if minute%60 == 0 { // a rack that stays rejected, and one whose pass fails and says so
			d.must(passes.Pass(metrics.Pass{Rack: "other", State: outcome.StateRejected}))
			d.must(passes.Pass(metrics.Pass{Rack: "third", State: outcome.StateFailed, NewStatus: true}))
		}
		d.others(minute)
	}
	d.extract(d.log.String())
}

// others has the metrics of other stacks and of other users of the account, which concern no alarm of this stack.
func (d *deployment) others(minute int) {
	d.publish(minute, "AWS/States ExecutionsFailed", awsfake.MachineARN+"-of-others", 1)
	d.publish(minute, "AWS/States ExecutionsTimedOut", awsfake.MachineARN+"-of-others", 1)
	d.publish(minute, "AWS/Lambda Throttles", "others", 1)
	d.publish(minute, "AWS/Lambda Errors", "others", 1)
	d.publish(minute, "AWS/SQS ApproximateNumberOfMessagesVisible", "others", 9)
	d.publish(minute, "AWS/SQS ApproximateAgeOfOldestMessage", "others", 9999)
	for _, namespace := range []string{"Sawhorse", "Other"} {
		if own := d.resync.Metrics.Namespace; namespace != own {
			foreign := metrics.Writer{Out: d.log, Now: d.now, Namespace: namespace}
			d.must(foreign.Longest(9 * time.Hour))
			d.must(foreign.Hold(99 * time.Hour))
			d.must(foreign.Unclear())
			d.must(foreign.Degraded([]string{"demo"}, nil))
			d.must(foreign.Waiting(9))
		}
	}
}

// lease writes the rack's lease as the state machine does.
func (d *deployment) lease(held span, minute int) {
	item := awsfake.Item{"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"}}
	if held.has(minute) {
		item["owner"] = &types.AttributeValueMemberS{Value: "me"}
		item["since"] = &types.AttributeValueMemberN{Value: fmt.Sprint(d.begin.Add(time.Duration(held.from) * time.Minute).Unix())}
	}
	d.cloud.Table.Items["rack#demo lease"] = item
}

func (d *deployment) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// span is a time in minutes, without its end.
type span struct{ from, to int }

func (s span) has(minute int) bool { return s.from <= minute && minute < s.to }

// incident is something that happens to a deployment, and when which alarm must tell of it: from the first minute of the
// span to the last one, and at no other time. Afterwards, and if late is set before too, CloudWatch may take more periods.
type incident struct {
	what, alarm                     string
	in                              span
	late                            bool
	held, missing, degraded, unseen span
	happens                         func(*deployment)
}

// incidents returns everything that alarms are for.
func incidents(of *deployment) []incident {
	rounded := func(minute, to int) int { return minute / to * to }
	period := max(5, of.tick)
	count := func(name, resource string) func(*deployment) {
		return func(d *deployment) { d.publish(100, name, resource, 1) }
	}
	all := []incident{
		{what: "nothing"},
		{what: "an execution fails", alarm: "PassFailed", in: span{100, 105},
			happens: count("AWS/States ExecutionsFailed", of.of("Machine"))},
		{what: "an execution runs out of time", alarm: "PassTimedOut", in: span{100, 105},
			happens: count("AWS/States ExecutionsTimedOut", of.of("Machine"))},
		{what: "a pass takes 59 minutes", held: span{30, 90}},
		{what: "a pass takes 100 minutes", alarm: "PassTooLong", held: span{30, 130}, in: span{90, 130 - of.tick + period}},
		{what: "an event is not delivered for an hour", alarm: "NotDelivered", in: span{100, 164}, happens: func(d *deployment) {
			id, _ := d.named("AWS::SQS::Queue", "Undelivered")
			for minute := range hours {
				d.publish(minute, "AWS/SQS ApproximateNumberOfMessagesVisible", d.name(id), map[bool]float64{true: 1}[span{100, 160}.has(minute)])
			}
		}},
		{what: "one tick is missing", missing: span{100, 101}},
		{what: "ticks are missing", alarm: "ScheduleMissing", missing: span{100, 200}, late: true,
			in: span{rounded(99, of.tick) + 2*period, 200}},
		{what: "ticks are missing, and resync is called for executions that failed", alarm: "ScheduleMissing", missing: span{100, 200},
			late: true, in: span{rounded(99, of.tick) + 2*period, 200}, happens: func(d *deployment) {
				for minute := 100; minute < 200; minute++ {
					d.publish(minute, "AWS/Lambda Invocations", d.of("Resync"), 1)
				}
			}},
		{what: "a pool is degraded for an hour", alarm: "PoolDegraded", degraded: span{100, 160},
			in: span{rounded(99+of.look, of.look), rounded(159, of.look) + 2*of.look}},
		{what: "pods wait for nodes for an hour", alarm: "PodsWaiting",
			in:      span{rounded(99+of.look, of.look), rounded(159, of.look) + 2*of.look},
			happens: measures(of.look, func(w metrics.Writer) error { return w.Waiting(3) })},
		{what: "one node check is missing", unseen: span{rounded(100, of.look), rounded(100, of.look) + 1}},
		{what: "node checks are missing", alarm: "NodeCheckMissing", unseen: span{100, 200}, late: true,
			in: span{rounded(99, of.look) + 2*of.look, rounded(199, of.look) + of.look}},
		{what: "one node check fails", happens: func(d *deployment) { d.publish(100, "AWS/Lambda Errors", d.of("Rollout"), 1) }},
		{what: "passes call audit, which fails and is called again", happens: func(d *deployment) {
			for minute := range hours {
				d.publish(minute, "AWS/Lambda Errors", d.of("Audit")+":12", 1)
			}
		}},
		{what: "a hold is 23 hours old", happens: measures(of.tick, func(w metrics.Writer) error { return w.Hold(23 * time.Hour) })},
		{what: "a hold is 25 hours old", alarm: "HoldOld", in: span{rounded(99+of.tick, of.tick), rounded(159, of.tick) + period},
			happens: measures(of.tick, func(w metrics.Writer) error { return w.Hold(25 * time.Hour) })},
		{what: "a hold is not understood", alarm: "HoldUnclear", in: span{rounded(99+of.tick, of.tick), rounded(159, of.tick) + period},
			happens: measures(of.tick, metrics.Writer.Unclear)},
		{what: "nobody reads an interruption queue for an hour", alarm: "QueueUnread", in: span{102, 160}, happens: unread},
	}
	for function, every := range map[string]int{"Audit": of.rounds, "Resync": period, "Rollout": of.look} {
		all = append(all, incident{what: function + " fails each time", alarm: function + "Failing",
			in: span{100 + every, 200 + every}, happens: func(d *deployment) {
				for minute := range hours {
					d.publish(minute, "AWS/Lambda Errors", d.of(function)+":"+ownership.Alias, map[bool]float64{true: 1}[span{100, 201}.has(minute)])
				}
			}})
	}
	for _, f := range functions {
		all = append(all, incident{what: f.name + " is throttled", alarm: logicalID(f.name) + "Throttled", in: span{100, 105},
			happens: count("AWS/Lambda Throttles", of.of(logicalID(f.name)))})
	}
	return all
}

// measures has the calls of an hour, so many minutes apart, measure something.
func measures(every int, measure func(metrics.Writer) error) func(*deployment) {
	return func(d *deployment) {
		d.log.Reset()
		for minute := 100; minute < 160; minute++ {
			if minute%every == 0 {
				d.at(minute)
				d.must(measure(d.writer("Resync")))
			}
		}
		d.extract(d.log.String())
	}
}

// unread has a message in the queue that a rack's plan has, with the tags of the plan.
func unread(d *deployment) {
	file, err := os.ReadFile("../internal/plan/testdata/enable.json")
	d.must(err)
	var golden struct{ Plan plan.Plan }
	d.must(json.Unmarshal(file, &golden))
	queue := golden.Plan.Queue
	d.tags["QueueName="+queue.Name] = queue.Tags
	for minute := range hours {
		age := 0
		if minute >= 100 && minute < 160 {
			age = min(300, 60*(minute-100)) // SQS drops messages after 300 s, and more follow
		}
		d.publish(minute, "AWS/SQS ApproximateAgeOfOldestMessage", queue.Name, float64(age))
	}
}

// Each alarm goes off when that happens that it is for, and ends when it has ended. Nothing else sets it off. What is
// counted comes from the functions' own code, with the environment that the template gives them.
func TestAlarmsGoOff(t *testing.T) {
	for _, of := range []template{production, custom} {
		alarms, untried := alarmsOf(t, of), map[string]bool{}
		for name := range alarms {
			untried[name] = true
		}
		quiet := deployed(t, of)
		quiet.lives(span{}, span{}, span{}, span{})
		for _, c := range incidents(quiet) {
			d := quiet.copy()
			if never := (span{}); c.held != never || c.missing != never || c.degraded != never || c.unseen != never {
				d = deployed(t, of)
				d.lives(c.held, c.missing, c.degraded, c.unseen)
			}
			if c.happens != nil {
				c.happens(d)
			}
			delete(untried, c.alarm)
			for name, a := range alarms {
				if wrong := d.wrong(a, c, name == c.alarm); wrong != "" {
					t.Errorf("stack %s, while %s: alarm %s %s", d.resync.Metrics.Namespace, c.what, name, wrong)
				}
			}
		}
		for name := range untried {
			t.Errorf("alarm %s never went off", name)
		}
	}
}

// wrong says when an alarm is not in the state in which it must be, or nothing.
func (d *deployment) wrong(a alarm, c incident, own bool) string {
	d.Helper()
	for further := range 4 {
		must, may := c.in, span{c.in.from, c.in.to + further*a.period}
		if c.late {
			must.from += further * a.period
		}
		for minute := range hours {
			switch on := d.inAlarm(a, minute, further); {
			case own && must.has(minute) && !on:
				return fmt.Sprintf("is not on in minute %d, with %d further periods", minute, further)
			case on && !(own && may.has(minute)):
				return fmt.Sprintf("is on in minute %d, with %d further periods", minute, further)
			}
		}
	}
	return ""
}

// The page has a row for each alarm, and the time after which Step Functions ends a pass.
func TestThePageHasEveryAlarm(t *testing.T) {
	page, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### Alarms\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var rows, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(section, -1) {
		rows = append(rows, row[1])
	}
	for name := range alarmsOf(t, production) {
		if !strings.HasSuffix(name, "Throttled") || name == "ValidateThrottled" { // one row for all functions
			want = append(want, name)
		}
	}
	slices.Sort(rows)
	slices.Sort(want)
	if !slices.Equal(rows, want) {
		t.Errorf("the page has %v, the stack %v", rows, want)
	}
	var machine struct{ TimeoutSeconds int }
	if err := json.Unmarshal([]byte(statemachine.Definition), &machine); err != nil {
		t.Fatal(err)
	}
	if row := fmt.Sprintf("| a pass ran out of time, after %d hours |", machine.TimeoutSeconds/3600); !strings.Contains(section, row) {
		t.Errorf("the page lacks %s", row)
	}
}
