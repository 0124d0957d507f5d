package nodepools

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// validateAgain is how often Karpenter is made to retry what EC2 has denied.
const validateAgain = 30 * time.Second

// reportAgain is the time after the last retry from which a denial is reported again. Karpenter itself would cache the
// denial for as long.
const reportAgain = 30 * time.Minute

// tryAgain makes Karpenter retry a dry run that EC2 denied. EC2 learns of a role's policies seconds after they were
// put, and Karpenter caches the answer for 30 minutes. The cache key contains the EC2NodeClass's annotations
// (karpenter-provider-aws 1.10, pkg/controllers/nodeclass/validation.go, cacheKey), so a changed annotation makes
// Karpenter ask again.
func (r *run) tryAgain(ctx context.Context, live *unstructured.Unstructured) error {
	if live.GetKind() != "EC2NodeClass" || !k8s.Unauthorized(live) {
		return nil
	}
	last, err := time.Parse(time.RFC3339, live.GetAnnotations()[ownership.AnnotationValidate])
	tried := err == nil
	if tried && r.Now().Before(last.Add(validateAgain)) {
		return nil
	}
	if err := r.client.Annotate(ctx, k8s.EC2NodeClass, live, ownership.AnnotationValidate, r.Now().UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	if !tried || r.Now().After(last.Add(reportAgain)) {
		_, note := k8s.Ready(live)
		r.progress.Happened("karpenter_enabled",
			"EC2 denied what Karpenter tried for %s (%s), so Karpenter was made to try again, and will be every 30 s while the pass "+
				"waits; if it stays so, look for a service control policy or permissions boundary that denies it to the role %s",
			k8s.Subject(live), note, r.plan.Infrastructure.Controller.Name)
	}
	return nil
}
