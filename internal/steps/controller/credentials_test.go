package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func pod(name, variable string) k8stest.Object {
	container := map[string]any{"name": "controller", "image": "i"}
	if variable != "" {
		container["env"] = []any{map[string]any{"name": variable, "value": "x"}}
	}
	return k8stest.Object{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": "kube-system", "labels": map[string]any{
			"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"}},
		"spec": map[string]any{"containers": []any{container}, "terminationGracePeriodSeconds": 0}}
}

// A pod that was admitted before EKS knew its credentials never gets them, even after restarts. It is deleted, once.
func TestAPodWithoutCredentialsIsDeletedOnce(t *testing.T) {
	for _, c := range []struct{ with, without string }{
		{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"},
		{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"},
	} {
		t.Run(c.with, func(t *testing.T) {
			s := begin(t)
			s.Create(node("one", "us-east-1a"))
			s.plan.Infrastructure.PodIdentity = c.with == "AWS_CONTAINER_CREDENTIALS_FULL_URI"
			s.defined()
			s.run(PartRelease, "installed release karpenter 1.10.0")
			good, bare, other := pod("good", c.with), pod("bare", ""), pod("other", c.without)
			for _, object := range []k8stest.Object{good, bare, other} {
				s.Create(object)
			}
			progress := s.run(PartRelease, "deleted Pod/kube-system/bare", "deleted Pod/kube-system/other")
			if s.Get(good) == nil || s.Get(bare) != nil || s.Get(other) != nil || progress.Wait == 0 {
				t.Errorf("pods %v %v %v, %+v", s.Get(good), s.Get(bare), s.Get(other), progress)
			}
			if len(progress.Incidents) != 1 || !strings.Contains(progress.Incidents[0].Message, c.with) {
				t.Errorf("incidents %v", progress.Incidents)
			}
			t.Log("what comes without them again is left for a while: EKS may not know the association yet")
			s.clock = s.clock.Add(again - time.Second)
			s.Create(bare)
			if progress := s.run(PartRelease); s.Get(bare) == nil || !strings.Contains(progress.Note, "bare") {
				t.Errorf("%+v", progress)
			}
			s.clock = s.clock.Add(time.Second)
			s.run(PartRelease, "deleted Pod/kube-system/bare")
		})
	}
}

// If nothing is wrong, nothing is written.
func TestPodsWithCredentialsStay(t *testing.T) {
	s := begin(t)
	s.Create(node("one", "us-east-1a"))
	s.plan.Infrastructure.PodIdentity = true
	s.defined()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	s.Create(pod("good", "AWS_CONTAINER_CREDENTIALS_FULL_URI"))
	s.RolledOut(deployment)
	before := s.versions()
	if progress := s.run(PartRelease); progress.Wait != 0 || len(progress.Incidents) != 0 || s.versions() != before {
		t.Errorf("nothing is wrong: %+v, %s, before %s", progress, s.versions(), before)
	}
}

// A variable in the pods' template is whoever's who wrote it. It is no proof that EKS gave the pods credentials, and other
// pods would be no better.
func TestAVariableOfTheTemplateIsNoProof(t *testing.T) {
	for variable, podIdentity := range map[string]bool{
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": true, "AWS_WEB_IDENTITY_TOKEN_FILE": false,
	} {
		t.Run(variable, func(t *testing.T) {
			s := begin(t)
			s.Create(node("one", "us-east-1a"))
			s.plan.Infrastructure.PodIdentity = podIdentity
			s.plan.Controller.Release.Values["controller"].(map[string]any)["env"] = []any{map[string]any{"name": variable, "value": "x"}}
			render(s.plan)
			s.defined()
			s.run(PartRelease, "installed release karpenter 1.10.0")
			s.Create(pod("taken", variable))
			s.RolledOut(deployment)
			progress := s.run(PartRelease)
			if progress.Wait == 0 || !strings.Contains(progress.Note, "its template sets "+variable) || s.Get(pod("taken", "")) == nil {
				t.Errorf("%+v", progress)
			}
		})
	}
}

// What another container has, such as one that was injected, is not the controller's.
func TestAVariableOfAnotherContainerIsNoProof(t *testing.T) {
	spec := corev1.PodSpec{Containers: []corev1.Container{
		{Name: "proxy", Env: []corev1.EnvVar{{Name: ownership.PodIdentityVariable}}}, {Name: "controller"},
	}}
	if hasVariable(spec, ownership.PodIdentityVariable) {
		t.Error("the controller has none")
	}
	spec.Containers[1].Env = spec.Containers[0].Env
	if !hasVariable(spec, ownership.PodIdentityVariable) {
		t.Error("the controller has it")
	}
}
