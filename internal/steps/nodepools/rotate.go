package nodepools

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// rotate makes Karpenter replace the nodes that are older than the plan wants, and no others any more. Karpenter finds a NodeClaim
// drifted whose annotation differs from its NodePool's (pkg/controllers/nodeclaim/disruption/drift.go), and replaces it within budgets,
// the replacement first. Karpenter itself writes the annotation when it creates the NodeClaim, and when a version of its hash
// function follows another (pkg/controllers/nodepool/hash), but not that of a drifted NodeClaim: 1.10 and 1.15 alike.
func (r *run) rotate(ctx context.Context) error {
	age, err := time.ParseDuration(r.plan.NodePools.RotateAfter)
	rotates, selector := err == nil, ownership.Rotating
	if rotates {
		selector = ""
	}
	pools := r.plan.NodePools.Names()
	var mark, unmark []unstructured.Unstructured
	err = r.client.Each(ctx, k8s.NodeClaim, "", selector, func(claim *unstructured.Unstructured) error {
		_, marked := claim.GetLabels()[ownership.Rotating]
		ours := slices.Contains(pools, claim.GetLabels()[ownership.LabelPool]) && claim.GetDeletionTimestamp() == nil
		old := rotates && !r.Now().Before(claim.GetCreationTimestamp().Add(age))
		switch hash := claim.GetAnnotations()[ownership.NodePoolHash]; {
		case !ours:
		case old && hash != "" && hash != ownership.Rotated && !r.plan.NodePools.Frozen:
			mark = append(mark, *claim)
		case marked && !old:
			unmark = append(unmark, *claim)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range mark {
		claim := &mark[i]
		has := claim.GetAnnotations()
		err := r.label(ctx, claim, "true", ownership.Rotated, has[ownership.NodePoolHashVersion]+"/"+has[ownership.NodePoolHash])
		if err != nil {
			return err
		}
		r.progress.Changed("rotates", "%s", k8s.Subject(claim))
	}
	return r.unmark(ctx, unmark)
}

// unmark gives NodeClaims their own hash back. One of another version of the hash function is that of the NodePool now, as Karpenter
// itself has it.
func (r *run) unmark(ctx context.Context, claims []unstructured.Unstructured) error {
	if len(claims) == 0 {
		return nil
	}
	pools, err := r.client.Ours(ctx, k8s.NodePool, r.plan.Rack)
	if err != nil {
		return err
	}
	for i := range claims {
		claim := &claims[i]
		has := claim.GetAnnotations()
		version, hash, _ := strings.Cut(has[ownership.AnnotationHash], "/")
		for _, pool := range pools {
			if pool.GetName() == claim.GetLabels()[ownership.LabelPool] && version != has[ownership.NodePoolHashVersion] {
				hash = pool.GetAnnotations()[ownership.NodePoolHash]
			}
		}
		if has[ownership.NodePoolHash] != ownership.Rotated { // Karpenter has written it since
			hash = has[ownership.NodePoolHash]
		}
		if err := r.label(ctx, claim, nil, hash, nil); err != nil {
			return err
		}
		r.progress.Changed("rotates no more", "%s", k8s.Subject(claim))
	}
	return nil
}

// label sets the label, Karpenter's annotation and ours of a NodeClaim, and removes what is nil.
func (r *run) label(ctx context.Context, claim *unstructured.Unstructured, label any, hash string, own any) error {
	return r.client.Note(ctx, k8s.NodeClaim, claim, map[string]any{ownership.Rotating: label},
		map[string]any{ownership.NodePoolHash: hash, ownership.AnnotationHash: own})
}
