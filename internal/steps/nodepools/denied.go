package nodepools

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
)

// validateAgain is how soon Karpenter is made to try again what EC2 has denied.
const validateAgain = 30 * time.Second

// unheard is how long a denial is told of once: as long as Karpenter itself would keep it.
const unheard = 30 * time.Minute

// tryAgain has Karpenter try again what EC2 denied its dry run. EC2 learns of a role's policies seconds after they were put, and
// Karpenter keeps the answer for 30 minutes, under a key that has the EC2NodeClass's annotations in it (karpenter-provider-aws 1.10,
// pkg/controllers/nodeclass/validation.go, cacheKey): another value of one of them is a new question.
func (r *run) tryAgain(ctx context.Context, live *unstructured.Unstructured) error {
	if live.GetKind() != "EC2NodeClass" || !k8s.Unauthorized(live) {
		return nil
	}
	last, err := time.Parse(time.RFC3339, live.GetAnnotations()[names.AnnotationValidate])
	asked := err == nil
	if asked && r.Now().Before(last.Add(validateAgain)) {
		return nil
	}
	if err := r.client.Annotate(ctx, k8s.EC2NodeClass, live, names.AnnotationValidate, r.Now().UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	if !asked || r.Now().After(last.Add(unheard)) {
		_, note := k8s.Ready(live)
		r.progress.Happened("karpenter_enabled", "EC2 denied what Karpenter tried for %s (%s), so Karpenter was made to try again, and will be every 30 s while the pass "+
			"waits; if it stays so, look for a service control policy or permissions boundary that denies it to the role %s",
			k8s.Subject(live), note, r.plan.Infrastructure.ControllerRole)
	}
	return nil
}
