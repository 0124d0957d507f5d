package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/rates"
)

// phase has the measurements of one phase.
type phase struct {
	began   time.Time
	written time.Duration
	// span is the time that the phase stands for.
	span time.Duration
	// events is the number of events that the phase makes, audits that of the racks that it audits.
	events, audits int

	history passes.History
	report  fault.Report
	uses    []rates.Use
}

// measure runs do, which makes so many events, under the request rates. It waits until all passes have ended, and prints
// their cost. There must be a pass, except in an hour of audits.
func (r *run) measure(ctx context.Context, what string, events int, do func() error) (passes.History, error) {
	return r.measured(ctx, what, phase{events: events}, do)
}

// measured does the same for a phase of which events and audits are known. An hour of audits is played in less time.
func (r *run) measured(ctx context.Context, what string, p phase, do func() error) (passes.History, error) {
	fmt.Fprintf(r.out, "\n%s\n", what)
	for _, begin := range []struct{ method, what string }{{http.MethodDelete, "faults"}, {http.MethodPut, "rates"}} { // resets the counts
		if err := r.environment.Sandbox(ctx, begin.method, begin.what, nil, nil); err != nil {
			return passes.History{}, err
		}
	}
	p.began = time.Now()
	if err := do(); err != nil {
		return passes.History{}, err
	}
	p.written = time.Since(p.began)
	if err := passes.Ended(ctx, r.aws, p.began, p.events); err != nil {
		return passes.History{}, err
	}
	if p.span = time.Hour; p.audits == 0 {
		p.span = time.Since(p.began)
	}
	// The histories are read without rate limits and are not counted.
	err := errors.Join(
		r.environment.Sandbox(ctx, http.MethodGet, "faults", nil, &p.report), r.environment.Sandbox(ctx, http.MethodGet, "rates", nil, &p.uses),
		r.environment.Sandbox(ctx, http.MethodDelete, "rates", nil, nil))
	if err != nil {
		return passes.History{}, err
	}
	if p.history, err = passes.Since(ctx, r.aws, p.began, p.events); err != nil {
		return p.history, err
	}
	if h := p.history; len(h.Iterations) == 0 && p.audits == 0 || len(h.Failed) > 0 || len(h.Overlaps()) > 0 {
		return h, fmt.Errorf("load: %s: %d passes, failed %q, two of one rack at once %q", what, len(h.Iterations), h.Failed, h.Overlaps())
	}
	r.cost(p)
	r.quotas(p)
	r.throttled(p)
	return p.history, nil
}

func (r *run) line(name, format string, args ...any) {
	fmt.Fprintf(r.out, "  %-46s %s\n", name, fmt.Sprintf(format, args...))
}

// cost prints the cost of the passes.
func (r *run) cost(p phase) {
	history := p.history
	r.line("until all were sent", "%.1f s", p.written.Seconds())
	if len(history.Iterations) > 0 {
		last := slices.MaxFunc(history.Iterations, func(a, b passes.Iteration) int { return a.To.Compare(b.To) }).To
		r.line("until the last pass had ended", "%.1f s", last.Sub(p.began).Seconds())
	}
	each, unit := float64(max(1, len(history.Iterations))), "pass"
	if p.audits > 0 {
		each, unit = float64(p.audits), "audit"
	}
	r.line("executions", "%d", history.Executions)
	r.line("passes", "%d, at most %d at once, no two of one rack, none failed", len(history.Iterations), history.AtOnce())
	r.line("states entered", "%d, %.1f for each %s", len(history.Entered), float64(len(history.Entered))/each, unit)
	r.line("calls of functions by the state machine", "%d, %.1f for each %s", history.Lambdas, float64(history.Lambdas)/each, unit)
	services := map[string]int{}
	for _, c := range p.report.Calls {
		services[c.Service] += c.Count
		if c.Service == "ssm" || c.Service == "dynamodb" && p.audits > 0 {
			services[c.Service+" "+c.Action] += c.Count
		}
	}
	for _, service := range slices.Sorted(maps.Keys(services)) {
		r.line("calls of "+service, "%d, %.1f for each %s", services[service], float64(services[service])/each, unit)
	}
}

// quotas prints the share of each quota that was used. The gateway's buckets supply most figures. The state machine
// bypasses the gateway, so its figures come from the histories.
func (r *run) quotas(p phase) {
	fmt.Fprintf(r.out, "  %-58s %7s %7s %6s %6s %8s %7s\n",
		"quota, calls a second (* not published: assumed)", "given", "refused", "peak", "share", "waited", "gave up")
	for _, u := range p.uses {
		star := ""
		if !u.Published {
			star = " *"
		}
		name := fmt.Sprintf("%s %s, %g%s", u.Service, u.Actions, u.PerSecond, star)
		share := 100 * float64(u.Given) / (u.PerSecond * p.span.Seconds())
		fmt.Fprintf(r.out, "  %-58s %7d %7d %5.0f%% %5.1f%% %6.1f s %7d\n", name, u.Given, u.Refused, 100*u.Peak, share,
			u.Waited, u.GivenUp)
	}
	if p.audits > 0 {
		return // audits run without the state machine
	}
	for _, of := range []struct {
		what       string
		most, used int
	}{
		{"executions started in a second, of 300", 300, passes.InASecond(p.history.Started)},
		{"states entered in a second, of 5000", rates.Transitions, passes.InASecond(p.history.Entered)},
		{"functions at once, of 1000", rates.Concurrency, passes.AtOnce(p.history.Calls)},
	} {
		fmt.Fprintf(r.out, "  %-58s %7d %7s %5.1f%%\n", of.what, of.used, "", 100*float64(of.used)/float64(of.most))
	}
}

// throttled prints the effect of the rejected calls. If all tries of a function's call are rejected, the state machine
// calls the function again.
func (r *run) throttled(p phase) {
	refused, waited := 0, 0.0
	for _, u := range p.uses {
		refused, waited = refused+u.Refused, max(waited, u.Waited)
	}
	r.line("refusals", "%d; a call of a function that went through in the end took %.1f s at most", refused, waited)
	r.line("calls of functions that ended as Throttled", "%d, the longest until its success %.1f s",
		p.history.Throttled, p.history.Slowest.Seconds())
}
