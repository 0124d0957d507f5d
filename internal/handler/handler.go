// Package handler is the border between AWS Lambda and a step: environment, AWS configuration, log, lease and errors.
// It has the only lambda.Start.
package handler

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sawhorse-io/sawhorse/internal/meter"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// Env is what every function gets from its surroundings.
type Env struct {
	// Function is the function's name in the plan.
	Function string
	AWS      aws.Config
	Store    *rack.Store
	Paths    names.Paths
	// Bus is the name of the event bus.
	Bus string
	Log *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// ReadOnly returns a copy whose AWS configuration and Store refuse to write, with readonly.ErrWouldWrite, and are more
// patient with throttling.
func (e Env) ReadOnly() Env {
	e.AWS = readonly.Config(e.AWS)
	e.AWS.Retryer = retryer(readTries)
	e.Store = &rack.Store{DB: dynamodb.NewFromConfig(e.AWS), Name: e.Store.Name}
	return e
}

// Setting reads an environment variable that the function cannot do without.
func (e Env) Setting(variable string) (string, error) {
	value := os.Getenv(variable)
	if value == "" {
		return "", fmt.Errorf("function %s: environment variable %s is not set", e.Function, variable)
	}
	return value, nil
}

// Number reads an environment variable that holds a whole number, zero or more.
func (e Env) Number(variable string) (int, error) {
	text, err := e.Setting(variable)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("function %s: environment variable %s is %q; it must be a whole number", e.Function, variable, text)
	}
	return n, nil
}

// List reads an environment variable that holds a list, with commas. One that is not set holds an empty list.
func (e Env) List(variable string) []string {
	return strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ',' })
}

// Meter measures passes; the log is its way to CloudWatch.
func (e Env) Meter() (meter.Meter, error) {
	namespace, err := e.Setting("SAWHORSE_METRICS")
	return meter.Meter{Out: os.Stdout, Namespace: namespace, Now: e.Now}, err
}

// The limits of one AWS call. All its tries end within 4 × 10 s and 1 + 2 + 4 s of pauses, less than a function's 60 s: so a
// step fails with the reason, and not because its time is over. What the SDK gives up on, the state machine tries again.
const (
	callTries = 4
	// readTries are those of ReadOnly. The audits of one tick read at the same time, and EKS and IAM throttle them. To
	// wait is cheaper than the pass that an audit requests if it cannot read. The audit limits the time of its reads.
	readTries   = 9
	tryTimeout  = 10 * time.Second // the SDK has none of its own: a lost packet would use up the function's time
	longestWait = 5 * time.Second
)

func awsConfig(ctx context.Context) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(tryTimeout)),
		config.WithRetryer(retryer(callTries)))
}

// retryer returns the SDK's standard retryer with a number of tries.
func retryer(tries int) func() aws.Retryer {
	return func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = tries, longestWait
			o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(exceptQuotas)}, o.Retryables...)
		})
	}
}

// exceptQuotas keeps the SDK from trying again what only a higher quota mends; of all else it says nothing.
func exceptQuotas(err error) aws.Ternary {
	if quotaReached(err) {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

func environment(ctx context.Context, function string) (Env, error) {
	env := Env{Function: function, Now: time.Now, Log: slog.New(slog.NewJSONHandler(os.Stdout, nil)).With("function", function)}
	var err error
	if env.AWS, err = awsConfig(ctx); err != nil {
		return env, fmt.Errorf("function %s: AWS configuration: %w", function, err)
	}
	table, err := env.Setting("SAWHORSE_TABLE")
	if err != nil {
		return env, err
	}
	if env.Paths.Prefix, err = env.Setting("SAWHORSE_PREFIX"); err != nil {
		return env, err
	}
	if env.Bus, err = env.Setting("SAWHORSE_BUS"); err != nil {
		return env, err
	}
	env.Store = &rack.Store{DB: dynamodb.NewFromConfig(env.AWS), Name: table}
	return env, nil
}

// Start serves one function: build wires it once, when the process starts; it then answers each call.
func Start[In, Out any](function string, build func(Env) (func(context.Context, In) (Out, error), error)) {
	env, err := environment(context.Background(), function)
	if err != nil {
		fatal(err)
	}
	serve, err := build(env)
	if err != nil {
		fatal(err)
	}
	lambda.Start(answer(env.Log, serve))
}

// answer logs what fails, with what the call was about, and gives it the name that the state machine knows.
func answer[In, Out any](log *slog.Logger, serve func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := serve(ctx, in)
		if err != nil {
			log.With(about(in)...).Error("failed", "error", steps.Shorten(err.Error()))
		}
		return out, edge(ctx, err)
	}
}

// about is what a function's input says of itself for the log.
func about(in any) []any {
	if named, ok := in.(interface{ About() []any }); ok {
		return named.About()
	}
	return nil
}

// fatal ends a process that cannot serve; Lambda reports it as a failed start.
func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
