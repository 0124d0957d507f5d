package report

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/troubleshooting.md again")

const heading = "## What a step waits for\n\n"

// The page's tables are the remedies.
func TestTroubleshootingDocumentation(t *testing.T) {
	const path = "../../../docs/troubleshooting.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	prose, tables, _ := strings.Cut(string(text), heading)
	if *update {
		tables = remedies()
		if err := os.WriteFile(path, []byte(prose+heading+tables), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if tables != remedies() {
		t.Error("docs/troubleshooting.md is not what the remedies say; run go test ./internal/pass/report -run Documentation -update")
	}
}

// remedies returns the part of the page that says what to do about late steps and failures.
func remedies() string {
	var page strings.Builder
	row := func(cells ...string) { fmt.Fprintf(&page, "| %s |\n", strings.Join(cells, " | ")) }
	page.WriteString("`sawhorse watch` shows the note of a step, and a `StepDeadlineExceeded` has it in its reason. A step has 5 to 90 " +
		"minutes, waits\nincluded: `sawhorse plan -o json` has the `deadline` of each in seconds. If it takes too long:\n\n")
	row("step", "what to do")
	row("---", "---")
	for _, step := range slices.Sorted(maps.Keys(late)) {
		row("`"+step+"`", late[step])
	}
	page.WriteString("\n## Failures\n\nThe status and the event `Rack Reconcile Failed` have the error, the reason and the remedy. " +
		"The reason is what AWS or\nKubernetes said, after what Sawhorse was doing.\n\n")
	row("the reason has", "remedy")
	row("---", "---")
	for _, r := range byReason {
		row("`"+r.part+"`", r.remedy)
	}
	page.WriteString("\n")
	row("error", "remedy")
	row("---", "---")
	names := map[string][]string{again: {"`StepFailed`"}}
	for _, name := range slices.Sorted(maps.Keys(byError)) {
		names[byError[name]] = append(names[byError[name]], "`"+name+"`")
	}
	for _, remedy := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return strings.Compare(names[a][0], names[b][0]) }) {
		row(strings.Join(names[remedy], ", "), remedy)
	}
	return page.String()
}

var (
	takesAway = regexp.MustCompile(`(?i)\b(delete|terminate|remove|end)\b`)
	capacity  = regexp.MustCompile(`(?i)\b(node groups?|scaling groups?|nodepools?|nodes?|instances?|capacity|pools?)\b`)
)

// No remedy removes nodes or what launches them: an operator who follows one during an incident must not make it worse.
func TestNoRemedyTakesCapacityAway(t *testing.T) {
	all := slices.Concat(slices.Collect(maps.Values(late)), slices.Collect(maps.Values(byError)))
	for _, r := range byReason {
		all = append(all, r.remedy)
	}
	for _, remedy := range all {
		for sentence := range strings.SplitSeq(remedy, ".") {
			if takesAway.MatchString(sentence) && capacity.MatchString(sentence) {
				t.Errorf("%q", sentence)
			}
		}
	}
}
