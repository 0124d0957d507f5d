// Package chaos injects faults while a rack is enabled, changed and disabled. It lets the system recover as it would in
// production, and compares the final state with that of an undisturbed run.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// The rack of the stories, and its cluster.
const (
	rack    = "demo"
	cluster = "demo"
	folder  = "/sawhorse/racks/" + rack + "/"
)

// World is a running sandbox as its users see it.
type World struct {
	environment user.Environment
	aws         aws.Config
	objects     dynamic.Interface
	machine     string // the state machine's ARN
	observer    *observer
	// playing is called with each story that begins.
	playing func(what string)
}

// patient retries a call for longer than MiniStack needs to restart, and also if its answer was cut off.
func patient() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 10
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return aws.TrueTernary
			}
			return aws.UnknownTernary
		}))
	})
}

// NewWorld reads the environment of a sandbox's users. It watches the sandbox until the context ends.
func NewWorld(ctx context.Context, environment user.Environment) (*World, error) {
	w := &World{environment: environment, aws: environment.AWS(), playing: func(string) {}}
	w.aws.Retryer = patient
	config, err := clientcmd.BuildConfigFromFlags("", environment.Value("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("chaos: kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 500, 1000
	config.WarningHandler = rest.NoWarnings{}
	if w.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("chaos: cluster client: %w", err)
	}
	_, machine, err := passes.StateMachine(ctx, w.aws)
	if err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	w.machine = *machine
	w.observer = observe(ctx, w.objects)
	return w, nil
}

// node makes Karpenter launch a node, for a pod that is deleted as soon as it runs. The node is empty then, so turning
// Karpenter off needs no capacity elsewhere.
func (w *World) node(ctx context.Context) error {
	_, err := w.environment.Run(ctx, `set -e; exec 2>&1
kubectl create -f - <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: passenger, namespace: default}
spec:
  nodeSelector: {convox.io/nodepool: workload}
  containers: [{name: pause, image: pause}]
EOF
kubectl wait pod passenger --for jsonpath='{.status.phase}'=Running --timeout 2m
kubectl delete pod passenger --grace-period 0 --force --wait=false`)
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	return nil
}

// write writes parameters of the rack.
func (w *World) write(ctx context.Context, values ...[2]string) error {
	store := ssm.NewFromConfig(w.aws)
	for _, pair := range values {
		_, err := store.PutParameter(ctx, &ssm.PutParameterInput{
			Name: aws.String(folder + pair[0]), Value: &pair[1], Type: "String", Overwrite: aws.Bool(true),
		})
		if err != nil {
			return fmt.Errorf("chaos: parameter %s: put: %w", pair[0], err)
		}
	}
	return nil
}

// fullPass requests the kind of pass that the schedule would start.
func (w *World) fullPass(ctx context.Context) error {
	out, err := eventbridge.NewFromConfig(w.aws).PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
		EventBusName: aws.String("sawhorse"), Source: aws.String("chaos"), DetailType: aws.String("Rack Reconcile Requested"),
		Detail: aws.String(`{"rack":"` + rack + `","full":true}`),
	}}})
	if err != nil || out.FailedEntryCount > 0 {
		return fmt.Errorf("chaos: request a full pass: %d failed: %w", out.FailedEntryCount, err)
	}
	return nil
}

// executions returns the number of running executions, and of all executions.
func (w *World) executions(ctx context.Context) (running, all int, err error) {
	pages := sfn.NewListExecutionsPaginator(sfn.NewFromConfig(w.aws), &sfn.ListExecutionsInput{StateMachineArn: &w.machine})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, 0, fmt.Errorf("chaos: executions: list: %w", err)
		}
		for _, e := range page.Executions {
			all++
			if e.Status == sfntypes.ExecutionStatusRunning {
				running++
			}
		}
	}
	return running, all, nil
}

// Poll interval and limits. The limits only bound waits that would hang.
const (
	poll       = 150 * time.Millisecond
	startLimit = 8 * time.Second
	passLimit  = 10 * time.Minute
)

// quiet waits until more than `before` executions have begun and none is running.
func (w *World) quiet(ctx context.Context, before int) error {
	began := time.Now()
	for {
		running, all, err := w.executions(ctx)
		if err != nil {
			return err
		}
		switch late := time.Since(began); {
		case running == 0 && all > before:
			return nil
		case all <= before && late > startLimit:
			return nil // the event was lost: the state shows whether that did harm
		case late > passLimit:
			return fmt.Errorf("chaos: after %s an execution still runs", passLimit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// arm sets the faults and resets the counts.
func (w *World) arm(ctx context.Context, faults []fault.Fault) error {
	return w.environment.Sandbox(ctx, http.MethodPut, "faults", faults, nil)
}

// report returns the calls that were counted and the faults that happened since arm.
func (w *World) report(ctx context.Context) (report fault.Report, err error) {
	err = w.environment.Sandbox(ctx, http.MethodGet, "faults", nil, &report)
	return report, err
}
