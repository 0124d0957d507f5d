// Package load writes to racks under AWS's default request rates. It reports the cost and the share of each quota that
// was used.
package load

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/seed"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// burst is the number of writes to one rack, made as fast as SSM accepts them, 3 a second.
const burst = 100

// atOnce is the maximum number of concurrent calls of this program.
const atOnce = 32

// patient retries a call until SSM accepts it, as automation that writes to all racks would. The SDK's default limit of
// retries is too low for that.
func patient(o *ssm.Options) {
	o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff, o.RateLimiter = 200, 2*time.Second, ratelimit.None
	})
}

// run is one run of the load test.
type run struct {
	environment user.Environment
	aws         aws.Config
	store       *ssm.Client
	functions   *lambda.Client
	out         *heartbeat.Writer
}

// Run writes many times to one rack, turns Karpenter on in the given number of racks, changes each, and runs an hour of the
// schedule with the given number of racks in the table.
func Run(ctx context.Context, environment user.Environment, racks, listed int, out *heartbeat.Writer) error {
	config := environment.AWS()
	r := &run{
		environment: environment, aws: config, store: ssm.NewFromConfig(config, patient), functions: lambda.NewFromConfig(config), out: out,
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	out.Ask(func() string { return r.running(ctx) })
	for _, step := range []func() error{
		func() error { return r.enable(ctx) },
		func() error { return r.burst(ctx) },
		func() error { return r.full(ctx) },
		func() error { return r.many(ctx, racks, listed) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// running returns how many executions run.
func (r *run) running(ctx context.Context) string {
	ctx, end := context.WithTimeout(ctx, 5*time.Second)
	defer end()
	n, err := passes.Running(ctx, r.aws)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d executions run", n)
}

// enable turns Karpenter on, so that the writes to the rack have an effect.
func (r *run) enable(ctx context.Context) error {
	if err := r.turnOn(ctx, seed.ClusterName); err != nil {
		return err
	}
	_, err := r.environment.Run(ctx, "sawhorse watch "+seed.ClusterName)
	return err
}

// full measures a full pass of a rack that is on and has nothing to repair. This is the cost of the schedule.
func (r *run) full(ctx context.Context) error {
	_, err := r.measure(ctx, "a full pass of one rack that is on", 1, func() error {
		_, err := r.environment.Run(ctx, `aws events put-events --entries '[{"EventBusName":"sawhorse","Source":"load",`+
			`"DetailType":"Rack Reconcile Requested","Detail":"{\"rack\":\"demo\",\"full\":true}"}]'`)
		return err
	})
	return err
}

// burst writes many values to one parameter. The last value is written after all others. A pass applies all writes
// before it, and first waits one second for further writes. So there may be one pass for each second that the writes
// take, plus a first and a last one.
func (r *run) burst(ctx context.Context) error {
	began, took := time.Now(), time.Duration(0)
	history, err := r.measure(ctx, fmt.Sprintf("%d writes to one rack at once", burst), burst, func() error {
		writers, writeCtx := errgroup.WithContext(ctx)
		writers.SetLimit(atOnce)
		for i := range burst - 1 {
			writers.Go(func() error { return r.write(writeCtx, seed.ClusterName, "karpenter_cpu_limit", fmt.Sprint(1000+i)) })
		}
		if err := writers.Wait(); err != nil {
			return err
		}
		err := r.write(ctx, seed.ClusterName, "karpenter_cpu_limit", "777")
		took = time.Since(began)
		return err
	})
	if err != nil {
		return err
	}
	if n, most := len(history.Iterations), int(took.Seconds())+2; n > most {
		return fmt.Errorf("load: %d writes cost %d passes, more than %d", burst, n, most)
	}
	limit, err := r.environment.Run(ctx, "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'")
	if err == nil && limit != "777" {
		err = fmt.Errorf("load: the NodePool's limit is %s, not the last value", limit)
	}
	return err
}

func (r *run) write(ctx context.Context, rack, name, value string) error {
	_, err := r.store.PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String("/sawhorse/racks/" + rack + "/params/" + name), Value: &value, Type: "String", Overwrite: aws.Bool(true),
	})
	if err != nil {
		return fmt.Errorf("load: rack %s: parameter %s: put: %w", rack, name, err)
	}
	return nil
}
