package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sawhorse-io/sawhorse/sandbox/admission"
)

// TestMain makes the test binary its own controller: started with FAKE_CONTROLLER, it writes its environment and its
// process id into that folder, and is ready while a file "ready" exists there.
func TestMain(m *testing.M) {
	dir := os.Getenv("FAKE_CONTROLLER")
	if dir == "" {
		os.Exit(m.Run())
	}
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(filepath.Join(dir, "ready")); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	_ = os.WriteFile(filepath.Join(dir, "environment"), []byte(strings.Join(os.Environ(), "\n")), 0o600)
	_ = os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(os.Getpid())), 0o600)
	fmt.Println("listening")
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Getenv("HEALTH_PROBE_PORT"), nil))
}

// scene is a kubelet that runs against a fake API server and a fake MiniStack.
type scene struct {
	t           *testing.T
	client      *fake.Clientset
	credentials map[string]string // MiniStack's answer
	dir         string            // of the fake controller
	logs        string
	stop        func() // ends the kubelet and waits for it
}

func newScene(t *testing.T, objects ...runtime.Object) *scene {
	s := &scene{t: t, client: fake.NewClientset(objects...), dir: t.TempDir(), logs: t.TempDir(), credentials: map[string]string{}}
	s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	s.client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "token" {
			return false, nil, nil
		}
		asked := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
		token := fmt.Sprintf("token for %v of pod %s", asked.Spec.Audiences, asked.Spec.BoundObjectRef.Name)
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: token}}, nil
	})
	ministack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query(); got.Get("cluster") != "demo" || got.Get("namespace") != "kube-system" ||
			got.Get("serviceAccount") != "karpenter" {
			t.Errorf("MiniStack was asked about %v", got)
		}
		_ = json.NewEncoder(w).Encode(s.credentials)
	}))
	t.Cleanup(ministack.Close)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Kubernetes: &rest.Config{Host: "https://127.0.0.1:1"}, Cluster: "demo", Region: "us-east-1", Gateway: "http://gateway",
		MiniStack: ministack.URL,
		Images:    map[string]string{image: binary, "gone:1.0.0": filepath.Join(t.TempDir(), "gone")},
		Dir:       t.TempDir(), Logs: s.logs, Log: slog.New(slog.DiscardHandler)}
	k := &kubelet{Config: config, client: s.client, workers: map[types.UID]*worker{}}
	k.backOff = func(int32) time.Duration { return 20 * time.Millisecond }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(s.stop)
	return s
}

func (s *scene) create(object runtime.Object) {
	s.t.Helper()
	if err := s.client.Tracker().Add(object); err != nil {
		s.t.Fatal(err)
	}
}

func account(annotations map[string]string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter", Annotations: annotations}}
}

// image is the one image that the scene's kubelet can pull.
const image = "example.com/karpenter/controller:1.10.0"

// schedule creates a controller pod that is already scheduled, with variables from the admission webhook. The image has
// a digest, as in the chart.
func (s *scene) schedule(given ...corev1.EnvVar) {
	s.t.Helper()
	s.scheduleImage(image+"@sha256:0c215133a37e0d8bc2515b75120d2fefa14be3f939aebc14020813cdc3c001a3", given...)
}

func (s *scene) scheduleImage(image string, given ...corev1.EnvVar) {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter-0", UID: "uid-0",
			Labels: map[string]string{"app.kubernetes.io/name": "karpenter"}},
		Spec: corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "karpenter", Containers: []corev1.Container{{
			Name: "controller", Image: image, Env: append([]corev1.EnvVar{{Name: "FAKE_CONTROLLER", Value: s.dir},
				{Name: "HEALTH_PROBE_PORT", Value: "8081"}, {Name: "CLUSTER_NAME", Value: "demo"}}, given...),
		}}},
	}
	if _, err := s.client.CoreV1().Pods("kube-system").Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) pod() *corev1.Pod {
	pod, err := s.client.CoreV1().Pods("kube-system").Get(context.Background(), "karpenter-0", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return pod
}

// status polls until the pod's phase, readiness and restarts have these values.
func (s *scene) status(phase corev1.PodPhase, ready bool, restarts int32) {
	s.t.Helper()
	s.await(fmt.Sprintf("%s, ready=%v, %d restarts", phase, ready, restarts), func() bool {
		pod := s.pod()
		if pod == nil || pod.Status.Phase != phase || len(pod.Status.ContainerStatuses) != 1 {
			return false
		}
		for _, c := range pod.Status.Conditions {
			if (c.Type == corev1.PodReady || c.Type == corev1.ContainersReady) && (c.Status == corev1.ConditionTrue) != ready {
				return false
			}
		}
		c := pod.Status.ContainerStatuses[0]
		return c.Ready == ready && c.RestartCount == restarts && c.State.Running != nil
	})
}

// await polls until the condition holds. The limit only bounds a test that would hang.
func (s *scene) await(what string, condition func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	s.t.Fatalf("%s: did not happen; the pod is %+v", what, s.pod())
}

func (s *scene) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(text)
}

func (s *scene) setReady(ready bool) {
	s.t.Helper()
	file := filepath.Join(s.dir, "ready")
	if !ready {
		_ = os.Remove(file)
	} else if err := os.WriteFile(file, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// pid waits until the fake controller has another process id than before.
func (s *scene) pid(before int) int {
	s.t.Helper()
	var pid int
	s.await("a new process", func() bool {
		pid, _ = strconv.Atoi(s.read("pid"))
		return pid != 0 && pid != before
	})
	return pid
}

func (s *scene) environment() map[string]string {
	s.t.Helper()
	s.pid(0)
	values := map[string]string{}
	for _, line := range strings.Split(s.read("environment"), "\n") {
		name, value, _ := strings.Cut(line, "=")
		values[name] = value
	}
	return values
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestReadyFollowsTheProbes(t *testing.T) {
	s := newScene(t, account(nil))
	s.schedule()
	s.status(corev1.PodRunning, false, 0)
	s.setReady(true)
	s.status(corev1.PodRunning, true, 0)
	s.setReady(false)
	s.status(corev1.PodRunning, false, 0)
}

func TestADeadProcessIsStartedAgain(t *testing.T) {
	s := newScene(t, account(nil))
	s.setReady(true)
	s.schedule()
	s.status(corev1.PodRunning, true, 0)
	s.setReady(false)
	first := s.pid(0)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.status(corev1.PodRunning, false, 1)
	s.pid(first)
	reason := `{"reason":"CrashLoopBackOff","message":"back-off 20ms restarting failed container=controller ` +
		`pod=karpenter-0_kube-system(uid-0)"}`
	if !slices.ContainsFunc(s.client.Actions(), func(action clienttesting.Action) bool {
		patch, is := action.(clienttesting.PatchAction)
		return is && strings.Contains(string(patch.GetPatch()), reason)
	}) {
		t.Errorf("no status had %s", reason)
	}
	s.setReady(true)
	s.status(corev1.PodRunning, true, 1)
	if text, _ := os.ReadFile(filepath.Join(s.logs, "karpenter-0.log")); !strings.Contains(string(text), "listening") {
		t.Errorf("the first process's log is %q", text)
	}
	if _, err := os.Stat(filepath.Join(s.logs, "karpenter-0.1.log")); err != nil {
		t.Errorf("the second process's log: %v", err)
	}
}

func TestADeletedPodGoesAfterItsProcess(t *testing.T) {
	s := newScene(t, account(nil))
	s.schedule()
	s.status(corev1.PodRunning, false, 0)
	pid := s.pid(0)
	stillRan := make(chan bool, 1)
	s.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.DeleteActionImpl).DeleteOptions
		if options.GracePeriodSeconds == nil || *options.GracePeriodSeconds != 0 || options.Preconditions == nil ||
			*options.Preconditions.UID != "uid-0" {
			t.Errorf("deleted with %+v", options)
		}
		stillRan <- alive(pid)
		return false, nil, nil
	})
	pod := s.pod()
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	if _, err := s.client.CoreV1().Pods("kube-system").Update(context.Background(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if <-stillRan {
		t.Error("the pod was removed while its process ran")
	}
	s.await("the pod's end", func() bool { return s.pod() == nil })
}

func TestAProcessEndsWhenItsPodHasGone(t *testing.T) {
	s := newScene(t, account(nil))
	s.schedule()
	s.status(corev1.PodRunning, false, 0)
	pid := s.pid(0)
	if err := s.client.CoreV1().Pods("kube-system").Delete(context.Background(), "karpenter-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.await("the process's end", func() bool { return !alive(pid) })
}

func TestProcessesEndWithTheKubelet(t *testing.T) {
	s := newScene(t, account(nil))
	s.schedule()
	s.status(corev1.PodRunning, false, 0)
	pid := s.pid(0)
	s.stop()
	if alive(pid) {
		t.Error("the process outlived the kubelet")
	}
	if s.pod() == nil {
		t.Error("the pod was removed although nobody deleted it")
	}
}

func TestAPodThatCannotStartSaysWhy(t *testing.T) {
	s := newScene(t)
	s.schedule(corev1.EnvVar{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}})
	s.await("the reason", func() bool {
		pod := s.pod()
		if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
			return false
		}
		waiting := pod.Status.ContainerStatuses[0].State.Waiting
		return waiting != nil && waiting.Reason == "CreateContainerConfigError" && strings.Contains(waiting.Message, "variable SECRET")
	})
}

func TestAPodOfOthersIsLeftAlone(t *testing.T) {
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "other", UID: "other"},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c"}}}}
	s := newScene(t, account(nil), other)
	s.schedule()
	s.status(corev1.PodRunning, false, 0)
	got, err := s.client.CoreV1().Pods("kube-system").Get(context.Background(), "other", metav1.GetOptions{})
	if err != nil || got.Status.Phase != "" {
		t.Errorf("the other pod is %q, %v", got.Status.Phase, err)
	}
}

func TestTheProcessIsItsServiceAccount(t *testing.T) {
	s := newScene(t, account(nil))
	s.schedule()
	values := s.environment()
	for name, want := range map[string]string{"CLUSTER_NAME": "demo", "AWS_ENDPOINT_URL": "http://gateway", "AWS_REGION": "us-east-1",
		"AWS_EC2_METADATA_DISABLED": "true", "LEADER_ELECTION_NAMESPACE": "kube-system"} {
		if values[name] != want {
			t.Errorf("%s=%q, want %q", name, values[name], want)
		}
	}
	if values["HEALTH_PROBE_PORT"] == "8081" || values["METRICS_PORT"] == "" {
		t.Errorf("ports: %q, %q", values["HEALTH_PROBE_PORT"], values["METRICS_PORT"])
	}
	if values["HOME"] != "" {
		t.Error("the supervisor's environment leaked into the pod")
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if values[name] != "" {
			t.Errorf("%s=%q for a pod without identity", name, values[name])
		}
	}
	config, err := clientcmd.LoadFromFile(values["KUBECONFIG"])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.AuthInfos["pod"].Token, "token for [] of pod karpenter-0"; got != want {
		t.Errorf("token %q, want %q", got, want)
	}
}

// The variables from the admission webhook decide. Later changes have no effect.
func TestAWSIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		given    []corev1.EnvVar
		web, pod bool
	}{
		"nothing": {nil, false, false},
		"IRSA": {
			[]corev1.EnvVar{{Name: admission.RoleARN, Value: "arn:aws:iam::000000000000:role/irsa"},
				{Name: admission.WebTokenFile, Value: "/var/run/token"}}, true, false,
		},
		"Pod Identity": {
			[]corev1.EnvVar{{Name: admission.CredentialsURL, Value: "http://169.254.170.23/v1/credentials"},
				{Name: admission.TokenFile, Value: "/var/run/token"}}, false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, account(map[string]string{admission.RoleAnnotation: "arn:aws:iam::000000000000:role/later"}))
			s.credentials = map[string]string{"AccessKeyId": "later"}
			s.schedule(c.given...)
			values := s.environment()
			if got := values[admission.RoleARN] != ""; got != c.web {
				t.Errorf("web identity: %v, want %v", got, c.web)
			}
			if got := strings.HasPrefix(values[admission.CredentialsURL], "http://127.0.0.1:"); got != c.pod {
				t.Errorf("pod identity at %q, want %v", values[admission.CredentialsURL], c.pod)
			}
			if token, _ := os.ReadFile(values[admission.WebTokenFile]); c.web &&
				string(token) != "token for [sts.amazonaws.com] of pod karpenter-0" {
				t.Errorf("web identity token %q", token)
			}
			if token, _ := os.ReadFile(values[admission.TokenFile]); c.pod && len(token) == 0 {
				t.Error("there is no token for the agent")
			}
		})
	}
}

// kubectl logs, and the reason of a failed version, read these.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"karpenter-0.log": "one\ntwo\n", "karpenter-0.1.log": "three\nfour\n", "other.log": "five\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		query, want string
		status      int
	}{
		{"karpenter-0/controller", "three\nfour\n", http.StatusOK},
		{"karpenter-0/controller?previous=true", "one\ntwo\n", http.StatusOK},
		{"karpenter-0/controller?tailLines=1", "four\n", http.StatusOK},
		{"karpenter-0/controller?tailLines=9&limitBytes=3", "thr", http.StatusOK},
		{"other/controller?previous=true", "pod other: no container has ended\n", http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		Logs(dir).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/containerLogs/kube-system/"+c.query, nil))
		if w.Code != c.status || w.Body.String() != c.want {
			t.Errorf("%s: %d, %q", c.query, w.Code, w.Body.String())
		}
	}
}
