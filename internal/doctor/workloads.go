package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// handler is part of the image name of AWS Node Termination Handler.
const handler = "aws-node-termination-handler"

func terminationHandler(o *Observed, found *findings) {
	check := func(kind string, meta metav1.ObjectMeta, spec corev1.PodSpec) {
		if !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return strings.Contains(c.Image, handler) }) {
			return
		}
		command := fmt.Sprintf("kubectl -n %s delete %s %s", meta.Namespace, strings.ToLower(kind), meta.Name)
		if release := meta.Annotations["meta.helm.sh/release-name"]; release != "" {
			command = fmt.Sprintf("helm -n %s uninstall %s", meta.Namespace, release)
		}
		found.add(failsIf(o.on()), fmt.Sprintf("%s %s/%s runs AWS Node Termination Handler", kind, meta.Namespace, meta.Name),
			"Remove it once Karpenter is on: Karpenter reads the same events from its own queue. "+
				"Where node groups of yours still need it, keep it off Karpenter's nodes.", command)
	}
	for _, d := range o.DaemonSets {
		check("DaemonSet", d.ObjectMeta, d.Spec.Template.Spec)
	}
	for _, d := range o.Deployments {
		check("Deployment", d.ObjectMeta, d.Spec.Template.Spec)
	}
}

func budgets(o *Observed, found *findings) {
	for i := range o.Budgets {
		b := &o.Budgets[i]
		if b.Status.ExpectedPods == 0 || b.Status.DisruptionsAllowed > 0 {
			continue
		}
		rule := neverYields(b)
		if rule == "" {
			found.add(Warns,
				fmt.Sprintf("PodDisruptionBudget %s/%s allows no eviction now: %d of %d pods are healthy, and it wants %d", b.Namespace,
					b.Name, b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy),
				"See why its pods are not healthy.", fmt.Sprintf("kubectl -n %s describe poddisruptionbudget %s", b.Namespace, b.Name))
			continue
		}
		patch := `{"spec":{"maxUnavailable":1}}`
		if b.Spec.MinAvailable != nil {
			patch = `{"spec":{"minAvailable":null,"maxUnavailable":1}}`
		}
		found.add(Fails,
			fmt.Sprintf("PodDisruptionBudget %s/%s allows no eviction, ever: %s (pods: %d)", b.Namespace, b.Name, rule, b.Status.ExpectedPods),
			"Let one pod go at a time; with a single replica, add a second one first where that may be.",
			fmt.Sprintf("kubectl -n %s patch poddisruptionbudget %s --type merge -p '%s'", b.Namespace, b.Name, patch))
	}
}

// neverYields returns the rule by which a budget allows no eviction even if all its pods are healthy; empty if there is
// no such rule.
func neverYields(b *policyv1.PodDisruptionBudget) string {
	expected := int(b.Status.ExpectedPods)
	if rule := b.Spec.MaxUnavailable; rule != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(rule, expected, true); err == nil && n == 0 {
			return "maxUnavailable is " + rule.String()
		}
	}
	if rule := b.Spec.MinAvailable; rule != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(rule, expected, true); err == nil && n >= expected {
			return "minAvailable is " + rule.String()
		}
	}
	return ""
}

func singleReplicas(o *Observed, found *findings) {
	var single []string
	add := func(kind string, meta metav1.ObjectMeta, replicas *int32) {
		if meta.Namespace != ownership.Namespace && (replicas == nil || *replicas == 1) {
			single = append(single, fmt.Sprintf("%s %s/%s", kind, meta.Namespace, meta.Name))
		}
	}
	for _, d := range o.Deployments {
		add("Deployment", d.ObjectMeta, d.Spec.Replicas)
	}
	for _, s := range o.StatefulSets {
		add("StatefulSet", s.ObjectMeta, s.Spec.Replicas)
	}
	if len(single) > 0 {
		found.add(Info, fmt.Sprintf("with one pod (%d): %s", len(single), some(single)),
			"Run two pods of what must not pause, with a PodDisruptionBudget of maxUnavailable 1; "+
				"or restrict when nodes are replaced by a disruption budget with a schedule in karpenter_config.")
	}
}

func barePods(o *Observed, found *findings) {
	bare := podsThat(o, func(p *corev1.Pod) bool {
		_, static := p.Annotations[corev1.MirrorPodAnnotationKey]
		return len(p.OwnerReferences) == 0 && !static
	})
	if len(bare) > 0 {
		found.add(Warns, fmt.Sprintf("pods without a controller (%d): %s", len(bare), some(bare)),
			"Run them by a Deployment, a StatefulSet or a Job, or delete them.")
	}
}

const stayOfOld = "cluster-autoscaler.kubernetes.io/safe-to-evict"

func doNotDisrupt(o *Observed, found *findings) {
	staying := podsThat(o, func(p *corev1.Pod) bool {
		controller := p.Namespace == ownership.Namespace && p.Labels["app.kubernetes.io/name"] == ownership.ReleaseController
		return p.Annotations[ownership.DoNotDisrupt] == "true" && !controller
	})
	if len(staying) > 0 {
		found.add(Info, fmt.Sprintf("pods with %s=true (%d): %s", ownership.DoNotDisrupt, len(staying), some(staying)),
			"Keep it for jobs that must not start over. On services, use a PodDisruptionBudget; "+
				"for a bound, set terminationGracePeriod in karpenter_config.")
	}
	unread := podsThat(o, func(p *corev1.Pod) bool {
		return p.Annotations[stayOfOld] == "false" && p.Annotations[ownership.DoNotDisrupt] == ""
	})
	if len(unread) > 0 {
		found.add(Info, fmt.Sprintf("pods with %s=false, which Karpenter does not read (%d): %s", stayOfOld, len(unread), some(unread)),
			"Give those that must not be moved "+ownership.DoNotDisrupt+"=true in their pod template.")
	}
}

// podsThat returns the names of the unfinished pods for which holds is true.
func podsThat(o *Observed, holds func(*corev1.Pod) bool) (found []string) {
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed && holds(p) {
			found = append(found, p.Namespace+"/"+p.Name)
		}
	}
	return found
}
