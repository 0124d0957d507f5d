package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// What a parameter names is compared with what the deployment allows before anything is done with it, even while
// Karpenter is off and while it is turned off.
func TestWhatTheDeploymentDoesNotAllow(t *testing.T) {
	const image, deployments = "karpenter_image_repository", "system_deployments"
	for written, parameter := range map[string]string{
		image + "=ghcr.io/somebody/controller":                                          image,
		image + "=210987654321.dkr.ecr.eu-central-1.amazonaws.com/karpenter/controller": image,
		deployments + "=kube-system/metrics-server,shop/web":                            deployments,
		deployments + "=kube-system/karpenter":                                          deployments,
		deployments + "=demo-2-system/api":                                              deployments, // rack demo-2
		image + "=123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter/controller": "",
		deployments + "=kube-system/coredns,demo-system/router,demo-system/y":           "",
	} {
		s := begin(t, auth, on, written)
		if parameter == "" {
			s.wants(s.pass(false), outcome.PassPlanned, true, enable)
			continue
		}
		for _, more := range []string{"", "karpenter_enabled=false"} {
			s.write(more)
			s.wants(s.pass(false), outcome.PassRejected, true, "")
			if found := s.problems(); len(found) != 1 || found[0].Parameter != parameter {
				t.Errorf("%s: %v", written, found)
			}
		}
	}
	t.Log("turning off takes no other image in, either, by which a controller that is down would be brought up")
	s := begin(t, auth, on)
	s.pass(false)
	s.write(off, image+"=ghcr.io/somebody/controller")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.write(on)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if p, err := s.store.Plan(t.Context(), "demo"); err != nil || strings.Contains(fmt.Sprint(p.Controller.Release.Values), "repository") {
		t.Errorf("%v: %+v", err, p.Controller)
	}
}

// If the deployment forbids a value that a rack already uses, the value stays in force with a warning until it is
// written again or Karpenter has been off. The rack is still repaired, and its other parameters take effect.
func TestWhatIsInForceStays(t *testing.T) {
	s := begin(t, auth, on, "karpenter_image_repository=ghcr.io/somebody/controller", "system_deployments=ingress/nginx,kube-system/coredns")
	s.validate.Observer.Deployment = plan.Deployment{
		RequireClusterTag: true, ImageRepositories: []string{"ghcr.io/somebody/*"}, SystemNamespaces: []string{"ingress"},
	}
	s.wants(s.pass(false), outcome.PassPlanned, true, enable)
	s.validate.Observer.Deployment = plan.Deployment{RequireClusterTag: true}
	s.write("karpenter_cpu_limit=7")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
	run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests))
	if err != nil || len(run.Warnings) != 2 || run.Warnings[0].Parameter != "karpenter_image_repository" ||
		run.Warnings[1].Parameter != "system_deployments" {
		t.Errorf("%v: %v", err, run.Warnings)
	}
	s.write("system_deployments=ingress/nginx,ingress/other,kube-system/coredns")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if found := s.problems(); len(found) != 1 || !strings.Contains(found[0].Message, "has ingress/other;") {
		t.Errorf("%v", found)
	}
	s.write("system_deployments=ingress/nginx", off)
	if got := s.pass(false); got.Outcome != outcome.PassPlanned {
		t.Errorf("turning off: %+v, %v", got, s.problems())
	}
	records := s.records()
	records.WasOn = false
	s.must(s.store.SaveRecords(t.Context(), "demo", records))
	s.write(on)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if found := s.problems(); len(found) != 2 {
		t.Errorf("%v", found)
	}
}
