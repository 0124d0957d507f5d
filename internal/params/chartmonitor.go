package params

import (
	"fmt"
	"regexp"
	"strings"
)

// endpointFields are the fields of a ServiceMonitor's endpoint that may be set. By others, Prometheus would read Secrets of
// kube-system and send them to a proxy, or ask another address.
var endpointFields = []string{
	"filterRunning", "honorLabels", "honorTimestamps", "interval", "scrapeTimeout", "trackTimestampsStaleness",
}

func endpoint(at string, value any) []flaw { return only(at, value, endpointFields...) }

// relabelFields are the fields of a rule (RelabelConfig of the Prometheus Operator).
var relabelFields = []string{"action", "modulus", "regex", "replacement", "separator", "sourceLabels", "targetLabel"}

func metricRelabelings(at string, value any) (flaws []flaw) {
	for i, rule := range entries(value) {
		flaws = append(flaws, only(fmt.Sprintf("%s[%d]", at, i), rule, relabelFields...)...)
	}
	return flaws
}

// ordinary matches a label that does not say where a target is, as __address__ does, and no template of one.
var ordinary = regexp.MustCompile(`^_?[A-Za-z0-9][A-Za-z0-9_]*$`)

// relabelings refuses rules that change where a target is: Prometheus would ask any address in its reach.
func relabelings(at string, value any) []flaw {
	flaws := metricRelabelings(at, value)
	for i, rule := range entries(value) {
		at := fmt.Sprintf("%s[%d]", at, i)
		action, _ := rule["action"].(string)
		target, given := rule["targetLabel"]
		if text, _ := target.(string); given && !ordinary.MatchString(text) {
			flaws = append(flaws, flaw{at + ".targetLabel", fmt.Sprintf("is %s, and labels with __ say where the target is; write the name of "+
				"another label", Shown(target))})
		}
		// A rule with labelmap makes names of labels from others, which pods have.
		prefix, _ := rule["replacement"].(string)
		if strings.EqualFold(action, "labelmap") && !startsPlain.MatchString(prefix) {
			flaws = append(flaws, flaw{at + ".replacement", fmt.Sprintf("is %s, and could make labels with __, which say where the target is; "+
				"begin it with letters, like pod_$1", Shown(rule["replacement"]))})
		}
	}
	return flaws
}

var startsPlain = regexp.MustCompile(`^[A-Za-z]`)
