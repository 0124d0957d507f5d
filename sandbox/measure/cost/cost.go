// Package cost counts what each kind of pass takes, and what AWS charges for it.
package cost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/seed"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// run is one run of the measurement.
type run struct {
	environment user.Environment
	aws         aws.Config
	out         *heartbeat.Writer
	// joined is what one execution took that found its rack held.
	joined Pass
}

// scene is one kind of pass, and what starts it.
type scene struct {
	name string
	// before is done first and not counted; it may be nil.
	before func(context.Context) error
	// do returns how many events it has made.
	do func(context.Context) (events int, err error)
	// idle means that it must be one call of one function, without transitions and without changes.
	idle bool
}

const (
	auditThat     = "an audit that finds nothing"
	changeThat    = "one parameter changed (a NodePool's limit)"
	afterAChange  = "the first audit after a change"
	fiveAtOnce    = "five writes at once"
	lookThat      = "a node check that finds nothing new"
	theOneThatMet = "of these, a write that joins a pass under way"
)

// Run plays each kind of pass on the rack demo, and prints what it took and what a month costs.
func Run(ctx context.Context, environment user.Environment, out *heartbeat.Writer) error {
	r := &run{environment: environment, aws: environment.AWS(), out: out}
	var all []Pass
	for _, s := range r.scenes() {
		out.At(s.name)
		one, err := r.play(ctx, s)
		if err != nil {
			return fmt.Errorf("cost: %s: %w", s.name, err)
		}
		fmt.Fprintf(out, "%s: %d executions, %d transitions, %d calls of functions\n", s.name, one.Executions, one.Transitions, len(one.Calls))
		all = append(all, one)
		if s.name == fiveAtOnce {
			all = append(all, r.joined)
		}
	}
	table(out, all)
	return check(out, all)
}

// scenes are in an order in which each leaves the rack as the next one needs it.
func (r *run) scenes() []scene {
	audit := func(ctx context.Context) (int, error) {
		_, err := r.environment.Run(ctx, `aws lambda invoke --function-name Sawhorse-audit:live --payload '{"rack":"demo"}' /dev/null`)
		return 0, err
	}
	look := func(ctx context.Context) (int, error) {
		_, err := r.environment.Run(ctx, `aws lambda invoke --function-name Sawhorse-rollout:live --payload '{"rack":"demo"}' /dev/null`)
		return 0, err
	}
	// The first look has something to tell, a minute after the pass: that the nodes have followed it.
	first := func(ctx context.Context) error {
		time.Sleep(65 * time.Second)
		_, err := look(ctx)
		return err
	}
	return []scene{
		{name: "access and Karpenter on, in a cluster that had neither", do: r.write("karpenter_auth_mode=true", "karpenter_enabled=true")},
		{name: auditThat, do: audit, idle: true},
		{name: lookThat, before: first, do: look, idle: true},
		{name: "nothing to do", do: r.request(`{"rack":"demo"}`)},
		{name: "a full pass that finds nothing", do: r.request(`{"rack":"demo","full":true}`)},
		{name: changeThat, do: r.write("karpenter_cpu_limit=200")},
		{name: afterAChange, do: audit, idle: true},
		{name: fiveAtOnce, do: r.write("karpenter_cpu_limit=201", "karpenter_memory_limit_gb=801", "karpenter_node_disk=51",
			"karpenter_build_cpu_limit=51", "karpenter_build_memory_limit_gb=201")},
		{name: "all steps, as after an upgrade that changes all of them", do: r.all},
		{name: "Karpenter off, no nodes to drain", do: r.write("karpenter_enabled=false")},
		{name: "Karpenter on again", do: r.write("karpenter_enabled=true")},
	}
}

// write returns what writes parameters at once.
func (r *run) write(values ...string) func(context.Context) (events int, err error) {
	return func(ctx context.Context) (int, error) {
		writes, ctx := errgroup.WithContext(ctx)
		for _, pair := range values {
			name, value, _ := strings.Cut(pair, "=")
			writes.Go(func() error { return r.environment.Put(ctx, seed.ClusterName, name, value) })
		}
		return len(values), writes.Wait()
	}
}

// request returns what requests a pass.
func (r *run) request(detail string) func(context.Context) (events int, err error) {
	return func(ctx context.Context) (int, error) {
		entry, err := json.Marshal([]map[string]string{{
			"EventBusName": "sawhorse", "Source": "cost", "DetailType": "Rack Reconcile Requested", "Detail": detail,
		}})
		if err == nil {
			_, err = r.environment.Run(ctx, "aws events put-events --entries '"+string(entry)+"'")
		}
		return 1, err
	}
}

// all makes every step due: no step counts as applied any more.
func (r *run) all(ctx context.Context) (events int, err error) {
	_, err = r.environment.Run(ctx, `aws dynamodb update-item `+
		`--table-name "$(aws dynamodb list-tables --query TableNames[0] --output text)" `+
		`--key '{"pk":{"S":"rack#demo"},"sk":{"S":"records"}}' --update-expression 'SET applied = :none' `+
		`--expression-attribute-values '{":none":{"M":{}}}'`)
	if err != nil {
		return 0, err
	}
	return r.request(`{"rack":"demo"}`)(ctx)
}

// tries is how often a scene is played if the schedule's own audit of the rack, once an hour, falls into it.
const tries = 3

// play plays a scene and counts.
func (r *run) play(ctx context.Context, s scene) (one Pass, err error) {
	if s.before != nil {
		if err := s.before(ctx); err != nil {
			return one, err
		}
	}
	for range tries {
		if one, err = r.count(ctx, s); err != nil || !s.idle || len(one.Calls) == 1 {
			break
		}
	}
	if err != nil || !s.idle {
		return one, err
	}
	if len(one.Calls) != 1 || one.Transitions+one.Writes+one.Changes+one.Events > 0 {
		err = fmt.Errorf("it is not one call that only reads: %d calls, %d transitions, %d writes, %d calls that change something, %d events",
			len(one.Calls), one.Transitions, one.Writes, one.Changes, one.Events)
	}
	return one, err
}

// count starts the scene's pass, waits until it has ended, and counts what it took.
func (r *run) count(ctx context.Context, s scene) (Pass, error) {
	p := Pass{Name: s.name}
	if err := passes.Idle(ctx, r.aws); err != nil {
		return p, err
	}
	if err := r.environment.Sandbox(ctx, http.MethodDelete, "faults", nil, nil); err != nil { // resets the counts
		return p, err
	}
	began := time.Now()
	events, err := s.do(ctx)
	if err != nil {
		return p, err
	}
	history, err := passes.Since(ctx, r.aws, began, events)
	if err != nil {
		return p, err
	}
	if len(history.Failed) > 0 || !s.idle && len(history.Iterations) == 0 {
		return p, fmt.Errorf("%d passes, failed %q", len(history.Iterations), history.Failed)
	}
	p.Executions, p.Transitions = history.Executions, len(history.Entered)
	r.join(history)
	var report fault.Report
	if err := r.environment.Sandbox(ctx, http.MethodGet, "faults", nil, &report); err != nil {
		return p, err
	}
	for _, c := range report.Calls {
		p.add(c)
	}
	return p, r.logs(ctx, began, &p)
}

// join notes what an execution took that ended because another one had the rack. Each of its tasks is a write.
func (r *run) join(history passes.History) {
	for _, path := range history.Paths {
		if len(path) > 0 && path[len(path)-1] == "Coalesced" {
			r.joined = Pass{Name: theOneThatMet, Executions: 1, Transitions: len(path)}
			for _, state := range path {
				if state == "Request" || state == "Acquire" {
					r.joined.Writes++
				}
			}
		}
	}
}

// logs adds the functions' logs since a time.
func (r *run) logs(ctx context.Context, since time.Time, p *Pass) error {
	lines, err := functionlog.Since(ctx, r.environment, "", since)
	for _, line := range lines {
		p.log(line)
	}
	return err
}

// table prints what the passes took.
func table(out io.Writer, all []Pass) {
	fmt.Fprintf(out, "\n| %-57s | executions | transitions | function calls | seconds | writes | reads | other calls | log KB "+
		"| dollars, measured | with cold starts |\n", "pass")
	fmt.Fprintf(out, "|%s|\n", strings.TrimSuffix(strings.Repeat("---|", 11), "|"))
	for _, p := range all {
		var others []string
		for _, service := range slices.Sorted(maps.Keys(p.Services)) {
			others = append(others, fmt.Sprintf("%s %d", service, p.Services[service]))
		}
		fmt.Fprintf(out, "| %-57s | %d | %d | %d | %.2f | %d | %d | %s | %.1f | %.6f | %.6f |\n", p.Name, p.Executions, p.Transitions,
			len(p.Calls), p.seconds(), p.Writes, p.Reads, strings.Join(others, ", "), float64(p.Logged)/1000, p.counts().Dollars(),
			p.cold().Dollars())
	}
}

// bill prints a month's bill and returns its sum.
func bill(out io.Writer, all []line) (sum float64) {
	for _, l := range all {
		fmt.Fprintf(out, "  %-50s %8.4f\n", l.what, l.dollars)
		sum += l.dollars
	}
	fmt.Fprintf(out, "  %-50s %8.4f\n", "together", sum)
	return sum
}

// check prints the prices and a month of a rack, and returns an error if that costs too much.
func check(out io.Writer, all []Pass) error {
	of := func(name string) Pass { return all[slices.IndexFunc(all, func(p Pass) bool { return p.Name == name })] }
	fmt.Fprintf(out, "\nprices in dollars\n")
	for _, p := range Prices {
		fmt.Fprintf(out, "  %-60s %.10f\n", p.What, p.Dollars)
	}
	fmt.Fprintf(out, "\na month of a rack in dollars, with cold starts in all calls, beyond the polling of its queue (%.4f)\n",
		Counts{QueueRequest: polls}.Dollars())
	if sum := bill(out, month(of(auditThat), of(changeThat), of(lookThat))); sum > most {
		return fmt.Errorf("cost: a month of a rack costs %.2f dollars, more than %.2f", sum, most)
	}
	return nil
}
