package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// description matches what a metric prints of itself: its name and its labels.
var description = regexp.MustCompile(`^Desc{fqName: "([^"]+)", .*variableLabels: {([^}]*)}}$`)

// registered lists the metrics that this controller has registered, each as name{labels}. /metrics leaves out those that have
// counted nothing yet.
func registered(w http.ResponseWriter, _ *http.Request) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		metrics.Registry.(prometheus.Collector).Describe(descriptions)
	}()
	var all []string
	for d := range descriptions {
		if m := description.FindStringSubmatch(d.String()); m != nil {
			labels := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
			slices.Sort(labels)
			all = append(all, fmt.Sprintf("%s{%s}", m[1], strings.Join(labels, ",")))
		}
	}
	slices.Sort(all)
	fmt.Fprintln(w, strings.Join(slices.Compact(all), "\n"))
}
