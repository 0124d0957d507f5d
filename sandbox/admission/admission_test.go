package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// admit sends a pod of service account karpenter through the webhook, and returns the resulting pod.
func admit(t *testing.T, assigned bool, account *corev1.ServiceAccount) corev1.PodSpec {
	t.Helper()
	ministack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked := r.URL.Query(); r.URL.Path {
		case "/_sandbox/pod-identity":
			if asked.Get("cluster") != "demo" || asked.Get("namespace") != "kube-system" || asked.Get("serviceAccount") != "karpenter" {
				t.Errorf("MiniStack was asked about %v", asked)
			}
			fmt.Fprintf(w, `{"assigned":%v}`, assigned)
		case "/_sandbox/lag/delay":
			fmt.Fprint(w, `{"seconds":5}`)
		}
	}))
	defer ministack.Close()
	target, err := url.Parse(ministack.URL)
	if err != nil {
		t.Fatal(err)
	}
	objects := []runtime.Object{}
	if account != nil {
		objects = append(objects, account)
	}
	webhook := &Webhook{Client: fake.NewClientset(objects...), Cluster: "demo", Region: "us-east-1", MiniStack: target,
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	spec := corev1.PodSpec{ServiceAccountName: "karpenter", InitContainers: []corev1.Container{{Name: "first"}},
		Containers: []corev1.Container{{Name: "controller", Env: []corev1.EnvVar{{Name: "AWS_REGION", Value: "eu-west-1"}}}}}
	pod, err := json.Marshal(corev1.Pod{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	review, err := json.Marshal(admissionv1.AdmissionReview{
		Request: &admissionv1.AdmissionRequest{UID: "u", Namespace: "kube-system", Object: runtime.RawExtension{Raw: pod}},
	})
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	webhook.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(review)))
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(recorder.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if !answer.Response.Allowed || answer.Response.UID != "u" {
		t.Errorf("answer %+v", answer.Response)
	}
	if answer.Response.Patch == nil {
		return spec
	}
	var patch []struct {
		Path  string
		Value corev1.PodSpec
	}
	if err := json.Unmarshal(answer.Response.Patch, &patch); err != nil || len(patch) != 1 || patch[0].Path != "/spec" {
		t.Fatalf("patch %s: %v", answer.Response.Patch, err)
	}
	return patch[0].Value
}

func account(age time.Duration, role string) *corev1.ServiceAccount {
	made := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter", CreationTimestamp: metav1.NewTime(now.Add(-age))},
	}
	if role != "" {
		made.Annotations = map[string]string{RoleAnnotation: role}
	}
	return made
}

func value(container corev1.Container, name string) string {
	for _, variable := range container.Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

func TestWhatDecidesAPodsCredentials(t *testing.T) {
	const role = "arn:aws:iam::000000000000:role/irsa"
	edited := account(time.Hour, role)
	edited.ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(now.Add(-time.Second)))}}
	for name, c := range map[string]struct {
		assigned bool
		account  *corev1.ServiceAccount
		url      bool
		role     string
	}{
		"no service account":                  {true, nil, false, ""},
		"neither":                             {false, account(time.Hour, ""), false, ""},
		"an association that EKS knows":       {true, account(time.Hour, ""), true, ""},
		"an association over an annotation":   {true, account(time.Hour, role), true, ""},
		"an annotation":                       {false, account(time.Hour, role), false, role},
		"an annotation that has just come":    {false, account(2*time.Second, role), false, ""},
		"an annotation of an account changed": {false, edited, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := admit(t, c.assigned, c.account)
			for _, container := range append(spec.InitContainers, spec.Containers...) {
				if got := value(container, CredentialsURL) != ""; got != c.url || got != (value(container, TokenFile) != "") {
					t.Errorf("%s: Pod Identity %v, want %v", container.Name, got, c.url)
				}
				if got := value(container, RoleARN); got != c.role || (got != "") != (value(container, WebTokenFile) != "") {
					t.Errorf("%s: role %q, want %q", container.Name, got, c.role)
				}
				if given := c.url || c.role != ""; given != (len(container.VolumeMounts) == 1) || given != (len(spec.Volumes) == 1) {
					t.Errorf("%s: mounts %v of %v", container.Name, container.VolumeMounts, spec.Volumes)
				}
			}
			if got := value(spec.Containers[0], "AWS_REGION"); got != "eu-west-1" {
				t.Errorf("its own region has become %s", got)
			}
		})
	}
}
