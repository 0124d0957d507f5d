package params

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// domains are the domains of keys of labels and annotations that may not be set, each with who reads them.
var domains = []struct{ domain, reader string }{
	{"kubernetes.io", "Kubernetes"}, {"k8s.io", "Kubernetes"}, {"x-k8s.io", "Kubernetes"},
	{"karpenter.sh", "Karpenter"}, {"k8s.aws", "Karpenter and AWS"}, {"amazonaws.com", "AWS, which gives credentials and networks by them"},
	{"sawhorse.dev", "Sawhorse"}, {"convox.io", "Convox"}, {"helm.sh", "Helm"},
	// These add containers, volumes or variables to pods at admission, some of them with an image from an annotation.
	{"banzaicloud.io", changesPods}, {"dapr.io", changesPods}, {"datadoghq.com", changesPods}, {"dynatrace.com", changesPods},
	{"hashicorp.com", changesPods}, {"istio.io", changesPods}, {"jaegertracing.io", changesPods}, {"kuma.io", changesPods},
	{"linkerd.io", changesPods}, {"opentelemetry.io", changesPods},
	// These choose a pod's network.
	{"cilium.io", changesPods}, {"cncf.io", changesPods}, {"io.cilium", changesPods}, {"projectcalico.org", changesPods},
	// These write workloads: an image's tag, a restart, a deletion.
	{"argoproj.io", changesPods}, {"fluxcd.io", changesPods}, {"keel.sh", changesPods}, {"stakater.com", changesPods},
}

const changesPods = "programs that change workloads"

// reader returns who reads keys of a key's domain, "" if nobody of the table does.
func reader(key string) string {
	domain, _, qualified := strings.Cut(strings.ToLower(key), "/")
	for _, d := range domains {
		if qualified && (domain == d.domain || strings.HasSuffix(domain, "."+d.domain)) {
			return d.reader
		}
	}
	return ""
}

// selecting are keys without a domain by which Services, PodDisruptionBudgets and policies of kube-system choose pods: a
// pod that has the label of kube-dns gets its queries.
var selecting = []string{"app", "component", "k8s-app", "name", "release", "tier"}

func annotations(at string, value any) []flaw { return keys(at, value, false) }

func monitorLabels(at string, value any) []flaw { return keys(at, value, true) }

func podLabels(at string, value any) []flaw {
	flaws := keys(at, value, true)
	fields, _ := value.(map[string]any)
	for _, key := range selecting {
		if _, given := fields[key]; given {
			flaws = append(flaws, flaw{Join(at, key), "is protected: Services of kube-system choose their pods by it; use another key, like team"})
		}
	}
	return flaws
}

// keys checks labels or annotations.
func keys(at string, value any, labels bool) (flaws []flaw) {
	fields, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		text, _ := fields[key].(string)
		wrong := validation.IsQualifiedName(strings.ToLower(key)) // as the API server does for annotations
		if labels {
			wrong = append(validation.IsQualifiedName(key), validation.IsValidLabelValue(text)...)
		}
		if by := reader(key); by != "" {
			flaws = append(flaws, flaw{Join(at, key), fmt.Sprintf("is protected: keys of its domain are orders to %s; use another key", by)})
		} else if len(wrong) > 0 {
			flaws = append(flaws, flaw{Join(at, key), fmt.Sprintf("is %s, which is not valid in Kubernetes: %s; change it", Shown(text), wrong[0])})
		}
	}
	return flaws
}
