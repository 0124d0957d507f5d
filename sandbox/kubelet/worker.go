package kubelet

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sawhorse-io/sawhorse/sandbox/process"
)

const (
	// maxGrace bounds a pod's own grace period, because the sandbox has to end in time.
	maxGrace = 10 * time.Second
	// impatient and patient are the intervals between the probes of a process that is not ready yet, and
	// of one that is.
	impatient = 100 * time.Millisecond
	patient   = time.Second
	// crashed is the waiting reason of a container that has ended.
	crashed = "CrashLoopBackOff"
)

// worker serves one pod from its scheduling to its end.
type worker struct {
	*kubelet
	pod      *corev1.Pod
	end      context.CancelCauseFunc
	identity []string // the variables for its credentials; nil until they are prepared
	reported *containerState
}

// run keeps the pod's process running until the context ends.
func (w *worker) run(ctx context.Context) {
	program, pulled := w.pull(ctx)
	if !pulled {
		return
	}
	for restarts := int32(0); ; {
		reason, err := w.serve(ctx, program, restarts)
		if ctx.Err() != nil {
			return
		}
		w.complain(reason, err)
		restarts++
		message, pause := err.Error(), w.backOff(restarts)
		if reason == crashed {
			message = fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", pause, w.container().Name,
				w.pod.Name, w.pod.Namespace, w.pod.UID)
		}
		w.tell(ctx, containerState{restarts: restarts, waiting: reason, message: message})
		if !sleep(ctx, pause) {
			return
		}
	}
}

// serve runs the process once and reports the result of its probes. When the process has ended, it returns the waiting
// reason of the container, as a kubelet names it.
func (w *worker) serve(ctx context.Context, program string, restarts int32) (reason string, err error) {
	ports, giveBack, err := process.FreePorts(2)
	if err != nil {
		return "CreateContainerError", err
	}
	defer giveBack()
	environment, err := w.environment(ctx, ports[0], ports[1])
	if err != nil {
		return "CreateContainerConfigError", err
	}
	group := process.NewGroup(w.Logs, w.grace())
	if err := group.Start(process.Spec{Name: logName(w.pod.Name, restarts), Path: program, Env: environment, Dir: w.folder()}); err != nil {
		return "CreateContainerError", err
	}
	defer group.Stop()
	w.announce(ctx, ports[0])
	state := containerState{since: metav1.Now(), restarts: restarts}
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case err := <-group.Died():
			return crashed, err
		case <-time.After(pause):
		}
		state.ready = answers(ctx, ports[1], "/healthz") && answers(ctx, ports[1], "/readyz")
		pause = impatient
		if w.tell(ctx, state) && state.ready {
			pause = patient
		}
	}
}

// announce writes into the pod where its metrics are, because the port is not the one that the pod names.
func (w *worker) announce(ctx context.Context, port int) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"http://127.0.0.1:%d/metrics"}}}`, Metrics, port)
	_, err := w.client.CoreV1().Pods(w.pod.Namespace).Patch(ctx, w.pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && ctx.Err() == nil {
		w.complain("announce", err)
	}
}

func (w *worker) grace() time.Duration {
	if seconds := w.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return min(time.Duration(*seconds)*time.Second, maxGrace)
	}
	return maxGrace
}

// logName is the name of a process, and of its log, after a number of restarts.
func logName(pod string, restarts int32) string {
	if restarts == 0 {
		return pod
	}
	return fmt.Sprintf("%s.%d", pod, restarts)
}

// answers probes the process as a kubelet does: a status from 200 to 399 is a success.
func answers(ctx context.Context, port int, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode >= 200 && response.StatusCode < 400
}

// remove deletes the pod from the API server after its process has ended.
func (w *worker) remove(ctx context.Context) {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &w.pod.UID}}
	for {
		err := w.client.CoreV1().Pods(w.pod.Namespace).Delete(ctx, w.pod.Name, now)
		// A conflict means that another pod of the same name has taken its place.
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		if !sleep(ctx, patient) {
			return
		}
		w.complain("remove", err)
	}
}

// sleep waits. It returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
