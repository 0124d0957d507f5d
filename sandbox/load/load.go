// Package load writes to racks while AWS's default rates hold, and tells what it cost and how much of each quota it used.
package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/sandbox/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/rates"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// burst is how many writes one rack gets as fast as SSM takes them, 3 a second; most is how many passes they may cost. A pass that
// runs sees all that came before it.
const (
	burst = 100
	most  = 20
)

// atOnce is how many calls this program makes at the same time.
const atOnce = 32

// patient has a call tried until SSM takes it, as an operator's own automation would that writes to all racks: the SDK's own limit to
// retries is for programs that give up.
func patient(o *ssm.Options) {
	o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff, o.RateLimiter = 200, 2*time.Second, ratelimit.None
	})
}

// run is one run of the load.
type run struct {
	environment user.Environment
	aws         aws.Config
	store       *ssm.Client
	out         io.Writer
}

// Run writes many times to one rack, once to each of so many racks, and has the schedule go over all of them.
func Run(ctx context.Context, environment user.Environment, racks int, out io.Writer) error {
	config := environment.AWS()
	r := &run{environment: environment, aws: config, store: ssm.NewFromConfig(config, patient), out: out}
	for _, step := range []func() error{
		func() error { return r.enable(ctx) },
		func() error { return r.burst(ctx) },
		func() error { return r.full(ctx) },
		func() error { return r.many(ctx, racks) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// enable turns Karpenter on, so that the writes to the rack have something to change.
func (r *run) enable(ctx context.Context) error {
	for _, name := range []string{"karpenter_auth_mode", "karpenter_enabled"} {
		if err := r.write(ctx, "demo", name, "true"); err != nil {
			return err
		}
	}
	_, err := r.command(ctx, "sawhorse watch demo")
	return err
}

// full is the full pass of a rack that is on and has nothing to mend: what the schedule costs.
func (r *run) full(ctx context.Context) error {
	_, err := r.measure(ctx, "a full pass of one rack that is on", func() error {
		_, err := r.command(ctx, `aws events put-events --entries '[{"EventBusName":"sawhorse","Source":"load","DetailType":"Rack Reconcile Requested","Detail":"{\"rack\":\"demo\",\"full\":true}"}]'`)
		return err
	})
	return err
}

// command runs a command as a user would, and gives what it printed.
func (r *run) command(ctx context.Context, line string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-c", line)
	command.Env = r.environment
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("load: %s: %w: %s", line, err, text)
	}
	return strings.TrimSpace(string(text)), nil
}

// burst writes many values to one parameter; the last one comes after all others.
func (r *run) burst(ctx context.Context) error {
	history, err := r.measure(ctx, fmt.Sprintf("%d writes to one rack at once", burst), func() error {
		writers, writeCtx := errgroup.WithContext(ctx)
		writers.SetLimit(atOnce)
		for i := range burst - 1 {
			writers.Go(func() error { return r.write(writeCtx, "demo", "karpenter_cpu_limit", fmt.Sprint(1000+i)) })
		}
		if err := writers.Wait(); err != nil {
			return err
		}
		return r.write(ctx, "demo", "karpenter_cpu_limit", "777")
	})
	if err != nil {
		return err
	}
	if n := len(history.Rounds); n > most {
		return fmt.Errorf("load: %d writes cost %d passes, more than %d", burst, n, most)
	}
	limit, err := r.command(ctx, "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'")
	if err == nil && limit != "777" {
		err = fmt.Errorf("load: the NodePool's limit is %s, not the last value", limit)
	}
	return err
}

// many makes clusters and racks of their names, writes once to each, and then has the schedule start a full pass of each.
func (r *run) many(ctx context.Context, n int) error {
	if err := r.clusters(ctx, n); err != nil {
		return err
	}
	history, err := r.measure(ctx, fmt.Sprintf("one write to each of %d racks at once", n), func() error {
		return each(ctx, n, func(ctx context.Context, name string) error { return r.write(ctx, name, "paused", "true") })
	})
	if err != nil {
		return err
	}
	if history.AtOnce() < 2 {
		return fmt.Errorf("load: no two of %d passes of different racks ran at once", len(history.Rounds))
	}
	if err := r.converged(ctx, n); err != nil {
		return err
	}
	history, err = r.measure(ctx, "a full pass of every rack, by the schedule's ticks", func() error { return r.ticks(ctx) })
	if err != nil {
		return err
	}
	if len(history.Rounds) < n+1 {
		return fmt.Errorf("load: %d full passes for %d racks", len(history.Rounds), n+1)
	}
	return nil
}

// clusters makes EKS clusters. They have no API server, so their racks are paused: their passes read, plan and report.
func (r *run) clusters(ctx context.Context, n int) error {
	client := eks.NewFromConfig(r.aws)
	demo, err := client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("demo")})
	if err != nil {
		return fmt.Errorf("load: cluster demo: describe: %w", err)
	}
	return each(ctx, n, func(ctx context.Context, name string) error {
		_, err := client.CreateCluster(ctx, &eks.CreateClusterInput{
			Name: &name, RoleArn: demo.Cluster.RoleArn, Version: demo.Cluster.Version,
			ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: demo.Cluster.ResourcesVpcConfig.SubnetIds},
		})
		return err
	})
}

// converged looks at the racks' statuses.
func (r *run) converged(ctx context.Context, n int) error {
	return each(ctx, n, func(ctx context.Context, name string) error {
		found, err := r.store.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/sawhorse/racks/" + name + "/status")})
		if err != nil {
			return err
		}
		var status struct{ State string }
		if err := json.Unmarshal([]byte(*found.Parameter.Value), &status); err != nil || status.State != "Paused" {
			return fmt.Errorf("rack %s: status %s (%v)", name, *found.Parameter.Value, err)
		}
		return nil
	})
}

// ticks calls the function resync as the schedule does, for each tick of an hour.
func (r *run) ticks(ctx context.Context) error {
	started := []int{}
	for minute := 0; minute < 60; minute += 5 {
		text, err := r.command(ctx, fmt.Sprintf(`aws lambda invoke --function-name Sawhorse-resync --payload '{"time":"2026-01-01T00:%02d:00Z"}' /dev/stderr 2>&1 >/dev/null`, minute))
		if err != nil {
			return err
		}
		var answer struct{ Racks []string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			return fmt.Errorf("load: tick: %s: %w", text, err)
		}
		started = append(started, len(answer.Racks))
	}
	fmt.Fprintf(r.out, "\nracks of each of the %d ticks in an hour: %v\n", len(started), started)
	return nil
}

func (r *run) write(ctx context.Context, rack, name, value string) error {
	_, err := r.store.PutParameter(ctx, &ssm.PutParameterInput{Name: aws.String("/sawhorse/racks/" + rack + "/params/" + name), Value: &value, Type: "String", Overwrite: aws.Bool(true)})
	if err != nil {
		return fmt.Errorf("load: rack %s: parameter %s: put: %w", rack, name, err)
	}
	return nil
}

// each does something for every rack, many at a time.
func each(ctx context.Context, n int, do func(ctx context.Context, name string) error) error {
	all, allCtx := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i := range n {
		all.Go(func() error { return do(allCtx, fmt.Sprintf("load-%03d", i)) })
	}
	return all.Wait()
}

// measure does something, waits until all passes have ended, and prints what they cost.
func (r *run) measure(ctx context.Context, what string, do func() error) (passes.History, error) {
	for _, begin := range []struct{ method, what string }{{http.MethodDelete, "faults"}, {http.MethodPut, "rates"}} { // they count anew
		if err := r.ask(ctx, begin.method, begin.what, nil); err != nil {
			return passes.History{}, err
		}
	}
	began := time.Now()
	if err := do(); err != nil {
		return passes.History{}, err
	}
	written := time.Since(began)
	time.Sleep(2 * time.Second) // for the last event
	history, err := passes.Since(ctx, r.aws, began)
	if err != nil {
		return history, err
	}
	var report fault.Report
	var uses []rates.Use
	if err := errors.Join(r.ask(ctx, http.MethodGet, "faults", &report), r.ask(ctx, http.MethodGet, "rates", &uses), r.ask(ctx, http.MethodDelete, "rates", nil)); err != nil {
		return history, err
	}
	if len(history.Rounds) == 0 || len(history.Failed) > 0 || len(history.Overlaps()) > 0 {
		return history, fmt.Errorf("load: %s: %d passes, failed %q, two of one rack at once %q", what, len(history.Rounds), history.Failed, history.Overlaps())
	}
	r.print(what, written, began, history, report)
	r.quotas(history, uses)
	return history, nil
}

func (r *run) print(what string, written time.Duration, began time.Time, history passes.History, report fault.Report) {
	last := slices.MaxFunc(history.Rounds, func(a, b passes.Round) int { return a.To.Compare(b.To) }).To
	fmt.Fprintf(r.out, "\n%s\n", what)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(r.out, "  %-36s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("until all were sent", "%.1f s", written.Seconds())
	line("until the last pass had ended", "%.1f s", last.Sub(began).Seconds())
	line("executions", "%d", history.Executions)
	line("passes", "%d, at most %d at once, no two of one rack", len(history.Rounds), history.AtOnce())
	line("calls of functions", "%d", history.Lambdas)
	services := map[string]int{}
	for _, c := range report.Calls {
		services[c.Service] += c.Count
		if c.Service == "ssm" {
			services["ssm "+c.Action] += c.Count
		}
	}
	for _, service := range slices.Sorted(maps.Keys(services)) {
		line("calls of "+service, "%d, %.1f for each pass", services[service], float64(services[service])/float64(len(history.Rounds)))
	}
}

// quotas prints the part of each quota that was used: of the gateway's buckets, and of what the state machine does past the gateway
// by its histories.
func (r *run) quotas(history passes.History, uses []rates.Use) {
	fmt.Fprintf(r.out, "  %-58s %7s %7s %6s %6s %10s\n", "quota, calls a second (* not published: assumed)", "given", "refused", "peak", "mean", "refusing")
	for _, u := range uses {
		star := ""
		if !u.Published {
			star = " *"
		}
		name := fmt.Sprintf("%s %s, %g%s", u.Service, u.Actions, u.PerSecond, star)
		fmt.Fprintf(r.out, "  %-58s %7d %7d %5.0f%% %5.1f%% %8.1f s\n", name, u.Given, u.Refused, 100*u.Peak, 100*u.Mean, u.Longest)
	}
	for _, of := range []struct {
		what       string
		most, used int
	}{
		{"executions started in a second, of 300", 300, passes.InASecond(history.Started)},
		{"states entered in a second, of 5000", rates.Transitions, passes.InASecond(history.Entered)},
		{"functions at once, of 1000", rates.Concurrency, passes.AtOnce(history.Calls)},
	} {
		fmt.Fprintf(r.out, "  %-58s %7d %7s %5.1f%%\n", of.what, of.used, "", 100*float64(of.used)/float64(of.most))
	}
	fmt.Fprintf(r.out, "  %-58s %7d, the slowest until its success %.1f s\n", "calls of functions that ended as Throttled, tried again", history.Throttled, history.Slowest.Seconds())
}

// ask reads, sets or resets what the gateway counts under a name.
func (r *run) ask(ctx context.Context, method, what string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, *r.aws.BaseEndpoint+"/_sandbox/"+what, nil)
	if err != nil {
		return fmt.Errorf("load: %s: %w", what, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("load: %s: %w", what, err)
	}
	defer response.Body.Close()
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("load: %s: decode: %w", what, err)
	}
	return nil
}
