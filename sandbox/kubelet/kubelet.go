// Package kubelet runs a real process for each pod of the Karpenter Deployment. It does what a node's kubelet and EKS's
// Pod Identity agent do for such a pod: it resolves the environment, requests the service account's token, provides the
// role's AWS credentials if the admission webhook has configured the pod for them, and starts the controller that the
// pod's image stands for. It reports the pod Ready when the controller's own probes answer, restarts the process when it
// dies, and stops it with its pod. kwok's pod stages must leave these pods alone.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Selector selects the pods that get a process. kwok must ignore them.
const Selector = "app.kubernetes.io/name=karpenter"

// Metrics is the annotation of each pod with the URL of its process's metrics.
const Metrics = "sandbox.sawhorse.dev/metrics"

// Config describes the cluster and the AWS of the pods.
type Config struct {
	Kubernetes *rest.Config // with administrator permissions
	Cluster    string       // the EKS cluster's name: Pod Identity associations belong to a cluster
	Region     string
	Gateway    string // URL that the pods get as AWS_ENDPOINT_URL
	MiniStack  string // URL of MiniStack itself, which knows the pods' roles
	// Images are the images that can be pulled, such as repository:tag, and the program that stands for each one.
	Images map[string]string
	Dir    string // gets a folder for each pod: kubeconfig, tokens
	Logs   string // gets {pod}.log for each pod, {pod}.N.log after its Nth restart
	Log    *slog.Logger
}

type kubelet struct {
	Config
	client  kubernetes.Interface
	agent   *agent
	backOff func(restarts int32) time.Duration

	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
}

// Reasons why a worker ends. Only a deleted pod is removed from the API server.
var (
	errDeleted = errors.New("the pod is deleted")
	errGone    = errors.New("the pod has gone")
)

// Run serves the pods until ctx ends, and returns when every process has been stopped.
func Run(ctx context.Context, config Config) error {
	client, err := kubernetes.NewForConfig(config.Kubernetes)
	if err != nil {
		return fmt.Errorf("kubelet: make client: %w", err)
	}
	k := &kubelet{Config: config, client: client, backOff: backOff, workers: map[types.UID]*worker{}}
	return k.run(ctx)
}

func (k *kubelet) run(ctx context.Context) error {
	agent, err := startAgent(k.credentials)
	if err != nil {
		return fmt.Errorf("kubelet: start credentials agent: %w", err)
	}
	defer agent.stop()
	k.agent = agent
	defer k.running.Wait()

	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = Selector }))
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { k.sync(ctx, pod.(*corev1.Pod)) },
		UpdateFunc: func(_, pod any) { k.sync(ctx, pod.(*corev1.Pod)) },
		DeleteFunc: k.gone,
	})
	if err != nil {
		return fmt.Errorf("kubelet: watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	<-ctx.Done()
	return nil
}

// sync starts or ends the pod's worker: a pod on a node has one, a deleted pod has none.
func (k *kubelet) sync(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.workers[pod.UID]
	if w == nil {
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.DeletionTimestamp == nil && (pod.Spec.NodeName == "" || finished) || ctx.Err() != nil {
			return
		}
		w = k.begin(ctx, pod)
	}
	if pod.DeletionTimestamp != nil {
		w.end(errDeleted)
	}
}

// begin starts a worker. The caller holds the lock.
func (k *kubelet) begin(ctx context.Context, pod *corev1.Pod) *worker {
	workerContext, end := context.WithCancelCause(ctx)
	w := &worker{kubelet: k, pod: pod, end: end}
	k.workers[pod.UID] = w
	k.running.Go(func() {
		if pod.DeletionTimestamp == nil {
			w.run(workerContext)
		}
		if context.Cause(workerContext) == errDeleted {
			w.remove(ctx)
		}
	})
	return w
}

func (k *kubelet) gone(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.workers[pod.UID]; w != nil {
		w.end(errGone)
		delete(k.workers, pod.UID)
	}
}

// backOff returns how long a container that died waits for its next start. It doubles like a
// kubelet's, with shorter times.
func backOff(restarts int32) time.Duration {
	return min(time.Second<<min(restarts-1, 10), 10*time.Second)
}

// complain logs an error that is not reported anywhere else.
func (w *worker) complain(phase string, err error) {
	w.Log.Error("kubelet", "pod", w.pod.Namespace+"/"+w.pod.Name, "phase", phase, "error", err)
}
