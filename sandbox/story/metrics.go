package story

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// scraped prints the metrics of both controllers, of which the leader has all and the other one few.
	scraped = `kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter ` +
		`-o jsonpath='{range .items[*]}{.metadata.annotations.sandbox\.sawhorse\.dev/metrics}{"\n"}{end}' | xargs -n 1 curl -sS`
	// registered prints the names and labels of all that one controller can count.
	registered = `curl -sS "$(kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter ` +
		`-o jsonpath='{.items[0].metadata.annotations.sandbox\.sawhorse\.dev/metrics}')/registered" ` +
		`| grep -E '^(karpenter|operator|controller_runtime)_'`
)

// selected are series that alerts select by more than their name, once there was something to count: the values of labels that
// no list of metrics has. The labels of a series are in the order of the alphabet.
var selected = []string{
	`karpenter_build_info\{`,
	`karpenter_cluster_state_synced`,
	`controller_runtime_reconcile_total\{controller="provisioner"`,
	`karpenter_cloudprovider_errors_total\{.*error="InsufficientCapacityError",method="Create"`,
	`karpenter_nodeclaims_disrupted_total\{.*nodepool="workload",.*reason="insufficient_capacity"`,
	`operator_nodeclaim_status_condition_current_status_seconds\{.*karpenter_sh_nodepool="workload",.*type="Initialized"`,
	`operator_nodepool_status_condition_count\{name="workload",.*status="True",type="Ready"`,
	`operator_nodepool_status_condition_count\{name="workload",.*type="NodeRegistrationHealthy"`,
	`operator_ec2nodeclass_status_condition_count\{name="workload",.*status="True",type="Ready"`,
	`karpenter_nodepools_usage\{nodepool="workload",resource_type="nodes"`,
	`karpenter_nodepools_usage\{nodepool="workload",resource_type="cpu"`,
	`karpenter_nodepools_limit\{nodepool="workload",resource_type="cpu"`,
	`karpenter_pods_unbound_time_seconds\{.*name="late-`,
	`karpenter_interruption_received_messages_total\{message_type="spot_interrupted"`,
	`karpenter_interruption_message_queue_duration_seconds_bucket\{le=`,
	`karpenter_voluntary_disruption_decision_evaluation_duration_seconds_bucket\{`,
}

// sample matches a line of metrics: the series, and its value.
var sample = regexp.MustCompile(`^([a-z0-9_]+(?:\{.*\})?) (\S+)$`)

// Metrics holds observability/ against the controller of each version: the names and labels of all its metrics
// (metrics/VERSION.txt in folder), and what it counts when a node is interrupted and another one cannot be launched. With
// update it writes those files, and of 1.10.0 the series, and what they were meanwhile.
func Metrics(s *Script, folder string, update bool, versions ...string) {
	s.Reconciled(s.Put("karpenter_consolidate_after", "1s"))
	for _, version := range versions {
		s.Chapter("What Karpenter "+version+" counts", func() {
			if version != s.Output(output("karpenter_version")) {
				changed(s, version)
			}
			file := filepath.Join(folder, "metrics", version+".txt")
			if update {
				s.write(file, s.Output(registered))
			}
			s.Check("its metrics, other than in observability/metrics", registered+" | diff "+file+" - || true", "")
			if !update || version != "1.10.0" {
				counts(s)
				return
			}
			meanwhile := scrape(s)
			crowd.start(s)
			s.Reconciled(s.Put("karpenter_node_labels", "team=web"))
			s.Await("Karpenter finds nodes outdated", func() string { return drifted(s) }, "true", time.Minute)
			s.Await("they are replaced", func() string { return drifted(s) }, "false", 3*time.Minute)
			crowd.end(s)
			s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
			series := counts(s)
			s.Unset("karpenter_node_labels")
			s.write(filepath.Join(folder, "metrics", "recorded.txt"), strings.Join(named(s, meanwhile.end(), folder+"/dashboards/*.json"), "\n"))
			s.write(filepath.Join(folder, "metrics", "series.txt"), strings.Join(named(s, series, folder+"/karpenter.rules.yaml"), "\n"))
		})
	}
	s.Unset("karpenter_consolidate_after")
	s.Reconciled(s.Put("karpenter_version", "1.10.0"))
}

// late is a pod that fits on no node that has one of orders, so that Karpenter launches one for it.
var late = app{name: "late", replicas: 1, cpu: `"3"`, spec: `affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: orders}}}`}

// counts gives the controller something to count, and returns all series that it had meanwhile.
func counts(s *Script) []string {
	seen := map[string]string{}
	look := func() {
		for line := range strings.Lines(s.Output(scraped)) {
			if m := sample.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				seen[m[1]] = m[2]
			}
		}
	}
	has := func(pattern string) {
		match := regexp.MustCompile("^" + pattern).MatchString
		s.Await("it counts "+pattern, func() string {
			look()
			return fmt.Sprint(slices.ContainsFunc(slices.Collect(maps.Keys(seen)), match))
		}, "true", time.Minute)
	}
	single.start(s)
	look()
	interrupt(s, nodeClaims(s).Items[0])
	has(`karpenter_interruption_deleted_messages_total`)
	s.Until("pods of orders that run", single.runs(), "1", 2*time.Minute)
	look()
	refuseLaunches(s, "InsufficientInstanceCapacity")
	defer s.inject() // a chapter that ends early leaves no fault to the next one
	s.Type(late.create())
	for _, pattern := range selected {
		has(pattern)
	}
	s.inject()
	late.end(s)
	single.end(s)
	s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	look()
	var all []string
	for _, series := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, series+" "+seen[series])
	}
	return all
}

// named returns the series whose metrics files name.
func named(s *Script, series []string, files string) []string {
	text := s.Output("cat " + files)
	return slices.DeleteFunc(series, func(line string) bool {
		name, _, _ := strings.Cut(strings.Fields(line)[0], "{")
		return !strings.Contains(text, histogram.ReplaceAllString(name, ""))
	})
}

// histogram matches what a histogram adds to its name.
var histogram = regexp.MustCompile(`_(bucket|sum|count)$`)

func (s *Script) write(file, text string) {
	if err := os.WriteFile(file, []byte(strings.TrimSpace(text)+"\n"), 0o644); err != nil {
		s.fail("%v", err)
	}
}
