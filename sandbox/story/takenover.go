package story

import (
	"encoding/json"
	"strings"
	"time"
)

// controllerPods prints each of Karpenter's pods with its restarts.
const controllerPods = `kubectl -n kube-system get pods -l app.kubernetes.io/instance=karpenter ` +
	`-o jsonpath='{range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount}{"\n"}{end}' | sort`

// TakenOver installs Karpenter with Helm in the place of Sawhorse's, and has it taken over: once as a person installs it and hands
// it over by the rack's label, and once as the release of Sawhorse before this one has, with Helm as a library. charts is the
// folder of the version's charts.
func TakenOver(s *Script, charts string) {
	for _, by := range []struct {
		whom, helm, labels string
		values             object
	}{
		{"A person has installed Karpenter with Helm", "helm", "", nil},
		// Helm's field manager has the name of the program.
		{"The release of Sawhorse before this one has installed Karpenter", "exec -a sawhorse helm", " --labels sawhorse.dev/rack=demo",
			object{"sawhorse.dev/rack": "demo"}},
	} {
		s.Chapter(by.whom, func() {
			installedByHelm(s, by.helm, by.labels, charts, by.values)
			pods := s.Output(controllerPods)
			s.Unset("paused")
			if by.values == nil {
				s.FullPass()
				s.Rejected("Deployment/kube-system/karpenter")
				s.Check("who manages Karpenter's Deployment", managed, "Helm")
				s.Type(strings.Replace(charted, "get -A -o name", "label -A", 1) + " sawhorse.dev/rack=demo")
			}
			s.FullPass()
			s.State("Reconciled")
			s.Contains("what was changed", "sawhorse status demo", "Helm release karpenter taken over")
			s.Check("Karpenter's pods", controllerPods, pods)
			s.Check("who manages Karpenter's Deployment", managed, "Sawhorse")
			s.Check("records of Helm", helmRecords, "")
			s.Check("annotations of Helm", strings.Replace(charted, "-o name", "-o yaml", 1)+" | grep -c meta.helm.sh || true", "0")
			auditInOrder(s, "An audit finds nothing to do.")
		})
	}
}

// installedByHelm replaces Sawhorse's Karpenter by one that Helm has installed with the same values, while the rack is paused.
func installedByHelm(s *Script, helm, labels, charts string, onObjects object) {
	image := s.Output("kubectl -n kube-system get deployment karpenter -o jsonpath='{.spec.template.spec.containers[0].image}'")
	_, digest, _ := strings.Cut(image, "@")
	values, err := json.Marshal(map[string]any{
		"additionalLabels": onObjects, "nodeSelector": object{"convox.io/system-node": "true"},
		"podAnnotations": object{"karpenter.sh/do-not-disrupt": "true"}, "serviceAccount": object{"name": "karpenter"},
		"settings": object{"clusterName": "demo", "interruptionQueue": "demo-karpenter"},
		"controller": object{"image": object{"tag": "1.10.0", "digest": digest},
			"resources": object{"requests": object{"cpu": "200m", "memory": "256Mi"}}},
	})
	if err != nil {
		s.fail("values: %v", err)
	}
	s.Put("paused", "true")
	s.Paused()
	s.Type(strings.Replace(charted, "get -A -o name", "delete -A", 1))
	s.Until("Karpenter's pods have gone", controllerPods, "", time.Minute)
	s.Type("kubectl label crd -l sawhorse.dev/rack sawhorse.dev/rack- app.kubernetes.io/version-")
	s.Type("(" + helm + " install karpenter-crd " + charts + "/karpenter-crd --namespace kube-system --take-ownership --force-conflicts" +
		labels + ")")
	s.Type("echo " + quoted(string(values)) + " | (" + helm + " install karpenter " + charts + "/karpenter --namespace kube-system " +
		"--values - --wait --timeout 2m" + labels + ")")
	s.Check("who manages Karpenter's Deployment", managed, "Helm")
}
