// Package latency measures how long a write to a parameter takes until the NodePool has it, and compares that with a
// bare change of a NodePool.
package latency

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/seed"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

const (
	// pool is the rack's NodePool, and bare one that Sawhorse does not manage: a manual change of its own pool would be
	// put back.
	pool = "workload"
	bare = "bare"
	// limit bounds a wait that would hang.
	limit = time.Minute
)

var nodePools = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}

// run is one run of the measurement.
type run struct {
	environment user.Environment
	aws         aws.Config
	pools       dynamic.ResourceInterface
	out         *heartbeat.Writer
	// debounce is the state machine's wait for the end of a burst of writes.
	debounce time.Duration
}

// round has the times of one round: of kubectl, of a call to the API server, and of a write to Parameter Store.
type round struct {
	kubectl, call, write time.Duration
	// states has the time in each state of the write's execution, until the NodePool had the value.
	states []state
}

type state struct {
	name string
	took time.Duration
}

// Run turns Karpenter on in the rack demo, and measures the given number of rounds.
func Run(ctx context.Context, environment user.Environment, rounds int, out *heartbeat.Writer) error {
	r, err := begin(ctx, environment, out)
	if err != nil {
		return err
	}
	var all []round
	for i := range rounds {
		one, err := r.round(ctx, 1000+i)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%2d of %d: kubectl patch %.3f s, one call to the API server %.3f s, a write %.3f s and the debounce time\n",
			i+1, rounds, one.kubectl.Seconds(), one.call.Seconds(), one.write.Seconds())
		all = append(all, one)
	}
	report(out, all, r.debounce)
	return nil
}

// begin turns the rack on, and makes the bare NodePool.
func begin(ctx context.Context, environment user.Environment, out *heartbeat.Writer) (*run, error) {
	r := &run{environment: environment, aws: environment.AWS(), out: out}
	out.At("the rack demo is turned on")
	for _, name := range []string{"karpenter_auth_mode", "karpenter_enabled"} {
		if err := environment.Put(ctx, seed.ClusterName, name, "true"); err != nil {
			return nil, err
		}
	}
	if _, err := environment.Run(ctx, "sawhorse watch "+seed.ClusterName); err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", environment.Value("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("latency: kubeconfig: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("latency: cluster client: %w", err)
	}
	r.pools = objects.Resource(nodePools)
	if err := r.copyPool(ctx); err != nil {
		return nil, err
	}
	if r.debounce, err = passes.Debounce(ctx, r.aws); err != nil {
		return nil, err
	}
	out.At("the rounds")
	return r, nil
}

// copyPool makes the bare NodePool, like the rack's.
func (r *run) copyPool(ctx context.Context) error {
	own, err := r.pools.Get(ctx, pool, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("latency: NodePool %s: %w", pool, err)
	}
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": own.GetAPIVersion(), "kind": own.GetKind(), "metadata": map[string]any{"name": bare}, "spec": own.Object["spec"],
	}}
	if _, err := r.pools.Create(ctx, other, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("latency: NodePool %s: create: %w", bare, err)
	}
	return nil
}

// round changes the limit of the bare NodePool twice, and writes the rack's parameter once.
func (r *run) round(ctx context.Context, cpu int) (one round, err error) {
	if err := passes.Idle(ctx, r.aws); err != nil {
		return one, err
	}
	patch := func(value int) []byte {
		body, _ := json.Marshal(map[string]any{"spec": map[string]any{"limits": map[string]any{"cpu": fmt.Sprint(value)}}}) // plain data
		return body
	}
	one.kubectl, _, err = r.timed(ctx, bare, cpu, func() error {
		_, err := r.environment.Run(ctx, fmt.Sprintf("kubectl patch nodepool %s --type merge -p '%s'", bare, patch(cpu)))
		return err
	})
	if err != nil {
		return one, err
	}
	one.call, _, err = r.timed(ctx, bare, cpu+1_000_000, func() error {
		_, err := r.pools.Patch(ctx, bare, types.MergePatchType, patch(cpu+1_000_000), metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return one, err
	}
	began := time.Now()
	took, seen, err := r.timed(ctx, pool, cpu, func() error {
		return r.environment.Put(ctx, seed.ClusterName, "karpenter_cpu_limit", fmt.Sprint(cpu))
	})
	if err != nil {
		return one, err
	}
	one.write = took - r.debounce
	history, err := passes.Since(ctx, r.aws, began, 1)
	if err != nil {
		return one, err
	}
	if len(history.Failed) > 0 || len(history.Timelines) == 0 {
		return one, fmt.Errorf("latency: %d executions, failed %q", len(history.Timelines), history.Failed)
	}
	one.states = times(began, seen, history.Timelines[0])
	return one, nil
}

// timed changes something, and returns how long it took until a watch saw the value, and when that was. kubectl may still run then.
func (r *run) timed(ctx context.Context, name string, cpu int, change func() error) (time.Duration, time.Time, error) {
	ctx, end := context.WithTimeout(ctx, limit)
	defer end()
	events, err := r.pools.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("latency: NodePool %s: watch: %w", name, err)
	}
	began, seen := time.Now(), time.Time{}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(change)
	both.Go(func() error {
		_, err := watchtools.UntilWithoutRetry(ctx, events, func(event watch.Event) (bool, error) {
			object, is := event.Object.(*unstructured.Unstructured)
			if !is {
				return false, apierrors.FromObject(event.Object)
			}
			has, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "limits", "cpu")
			return fmt.Sprint(has) == fmt.Sprint(cpu), nil
		})
		seen = time.Now()
		return err
	})
	if err := both.Wait(); err != nil {
		return 0, began, fmt.Errorf("latency: NodePool %s, limit %d: %w", name, cpu, err)
	}
	return seen.Sub(began), seen, nil
}

// times returns how long each state took from the write until the NodePool had the value.
func times(began, seen time.Time, execution passes.Timeline) []state {
	all := []state{{"write, event, start", execution.Began.Sub(began)}}
	if len(execution.States) > 0 {
		all = append(all, state{"until the first state", execution.States[0].At.Sub(execution.Began)})
	}
	for i, visit := range execution.States {
		if !visit.At.Before(seen) {
			break
		}
		end := seen
		if i+1 < len(execution.States) && execution.States[i+1].At.Before(seen) {
			end = execution.States[i+1].At
		}
		all = append(all, state{visit.State, end.Sub(visit.At)})
	}
	return all
}

// report prints the medians. An execution that enters a state more than once is in it for the sum.
func report(out *heartbeat.Writer, all []round, debounce time.Duration) {
	of := func(value func(round) time.Duration) float64 {
		var values []time.Duration
		for _, one := range all {
			values = append(values, value(one))
		}
		return median(values).Seconds()
	}
	kubectl := of(func(r round) time.Duration { return r.kubectl })
	call := of(func(r round) time.Duration { return r.call })
	write := of(func(r round) time.Duration { return r.write })
	fmt.Fprintf(out, "\nmedians of %d rounds, until a watch has the value\n", len(all))
	fmt.Fprintf(out, "  %-40s %.3f s\n", "kubectl patch of a NodePool", kubectl)
	fmt.Fprintf(out, "  %-40s %.3f s\n", "the same as one call to the API server", call)
	fmt.Fprintf(out, "  %-40s %.3f s, without the debounce time of %g s\n", "a write to Parameter Store", write, debounce.Seconds())
	fmt.Fprintf(out, "  %-40s %.1f\n", "the write, compared with kubectl", write/kubectl)
	fmt.Fprintf(out, "\nmedians of the states of the write's execution, until the NodePool has the value\n")
	var names []string
	for _, one := range all {
		for _, s := range one.states {
			if !slices.Contains(names, s.name) {
				names = append(names, s.name)
			}
		}
	}
	for _, name := range names {
		fmt.Fprintf(out, "  %-40s %.3f s\n", name, of(func(r round) (sum time.Duration) {
			for _, s := range r.states {
				if s.name == name {
					sum += s.took
				}
			}
			return sum
		}))
	}
}

func median(values []time.Duration) time.Duration {
	values = slices.Sorted(slices.Values(values))
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}
