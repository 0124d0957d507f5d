package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// An access entry works some seconds before its policy makes the principal an administrator. Every part waits for that,
// whichever call is refused.
func TestRightsThatDoNotWorkYet(t *testing.T) {
	s := begin(t)
	s.defined()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	s.eks.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApi
	entry := &awsfake.Entry{Policies: []string{admin.Policy("aws")}, Associated: s.clock}
	s.eks.Entries[principal] = entry
	nobody := s.as(s.As("nobody"))
	for _, part := range []string{PartCRDs, PartRelease, PartPlugin, PartServe} {
		s.plan.Controller.DevicePlugin = devicePlugin("demo")
		progress, err := nobody.Run(ctx, s.plan, part)
		if err != nil || progress.Wait <= 0 || !strings.Contains(progress.Note, "does not work yet") {
			t.Errorf("%s: the policy is new: %+v, %v", part, progress, err)
		}
	}
	s.clock = s.clock.Add(3 * time.Minute)
	_, err := nobody.Run(ctx, s.plan, PartRelease)
	if !k8s.IsForbidden(err) || !strings.Contains(err.Error(), "admission webhook") {
		t.Errorf("the policy is old: %v", err)
	}
	entry.Policies = nil
	if _, err := nobody.Run(ctx, s.plan, PartRelease); !k8s.IsForbidden(err) || !strings.Contains(err.Error(),
		"send a full Rack Reconcile Requested") {
		t.Errorf("there is no policy: %v", err)
	}
}
