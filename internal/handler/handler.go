// Package handler connects AWS Lambda with the functions' code: environment, AWS configuration, log, lease and errors. Only
// this package calls lambda.Start.
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

	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// Env has what every function needs from its environment.
type Env struct {
	// Function is the function's name, as in plan.Step.
	Function string
	AWS      aws.Config
	Store    *store.Store
	Paths    ownership.Paths
	// Bus is the name of the event bus.
	Bus string
	Log *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// ReadOnly returns a copy whose AWS configuration and Store refuse to write, with readonly.ErrWouldWrite, and are more
// patient with throttling.
func (e Env) ReadOnly() Env { return e.reading(readonly.Config(e.AWS)) }

// ReadOnce returns such a copy that also sends each read once. It is for one look at one rack.
func (e Env) ReadOnce() Env { return e.reading(readonly.Once(e.AWS)) }

func (e Env) reading(config aws.Config) Env {
	config.Retryer = retryer(readTries)
	e.AWS, e.Store = config, &store.Store{DB: dynamodb.NewFromConfig(config), Name: e.Store.Name}
	return e
}

// Setting reads an environment variable that must be set.
func (e Env) Setting(variable string) (string, error) {
	value := os.Getenv(variable)
	if value == "" {
		return "", fmt.Errorf("function %s: environment variable %s is not set; deploy the stack again", e.Function, variable)
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
		return 0, fmt.Errorf("function %s: environment variable %s is %q; it must be a whole number; deploy the stack again",
			e.Function, variable, text)
	}
	return n, nil
}

// List reads an environment variable that holds a list, with commas. One that is not set holds an empty list.
func (e Env) List(variable string) []string {
	return strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ',' })
}

// Metrics returns the writer of the metrics of passes. It writes to the log, from which CloudWatch extracts them.
func (e Env) Metrics() (metrics.Writer, error) {
	namespace, err := e.Setting("SAWHORSE_METRICS")
	return metrics.Writer{Out: os.Stdout, Namespace: namespace, Now: e.Now}, err
}

// The limits of one AWS call. All its tries end within 4 × 10 s and 1 + 2 + 4 s of pauses, which is less than a function's
// 60 s, so a step fails with the reason and not with a timeout. The state machine then repeats the function's call.
const (
	callTries = 4
	// readTries are those of ReadOnly. The audits of one tick read at the same time, and EKS and IAM throttle them. To
	// wait is cheaper than the pass that an audit requests if it cannot read. The audit limits the time of its reads, so
	// the tries must not run out before that.
	readTries   = 40
	tryTimeout  = 10 * time.Second // the SDK has none: a lost packet would use up the function's time
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

// exceptQuotas keeps the SDK from repeating a call that needs a higher quota. It leaves all other errors to the SDK.
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
	env.Store = &store.Store{DB: dynamodb.NewFromConfig(env.AWS), Name: table}
	return env, nil
}

// Start serves the calls of one function. It calls build once, when the process starts.
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

// answer logs an error with the attributes of the call, and returns it as a type whose name the state machine knows.
func answer[In, Out any](log *slog.Logger, serve func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := serve(ctx, in)
		if err != nil {
			log.With(about(in)...).Error("failed", "error", outcome.Shorten(err.Error()))
		}
		return out, edge(ctx, err)
	}
}

// about returns the attributes of an input for the log, if it has any.
func about(in any) []any {
	if named, ok := in.(interface{ About() []any }); ok {
		return named.About()
	}
	return nil
}

// fatal ends a process that cannot serve. Lambda reports that as a failed start.
func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
