package docs

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated part of docs/troubleshooting.md anew")

// marker parts the page: what stands above it is written by hand.
const (
	troubleshooting = root + "/docs/troubleshooting.md"
	marker          = "<!-- From here on the page is made of the sources: go test ./internal/docs -update -->\n"
)

// The page says what the sources say.
func TestTroubleshootingIsCurrent(t *testing.T) {
	text, err := os.ReadFile(troubleshooting)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(text), marker)
	if !found {
		t.Fatalf("%s has no line %q", troubleshooting, marker)
	}
	want := head + marker + generated(t, readSource(t, "events", "internal", "statemachine"))
	if *update {
		if err := os.WriteFile(troubleshooting, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Error("docs/troubleshooting.md is not what the sources say; run go test ./internal/docs -update")
	}
}

func generated(t *testing.T, s *source) string {
	p := &page{t: t, used: map[string]bool{}}
	p.sentences(s.sentences(t))
	p.reasons(s.reasons())
	p.waits(s)
	p.failures(s)
	for begin := range furtherRemedies {
		if !p.used[begin] {
			t.Errorf("furtherRemedies has %q, which nothing says any more", begin)
		}
	}
	return p.String()
}

// page is the generated part of the document.
type page struct {
	strings.Builder
	t    *testing.T
	used map[string]bool
}

func (p *page) line(text string) { p.WriteString(text + "\n") }

// entry is one sentence: what it is, and what to do, in bold. A sentence that does not say what to do has it in furtherRemedies.
func (p *page) entry(kind, text string) {
	signs := []string{"; ", ". "}
	if kind != "" {
		signs = append(signs, ": ", ", or ") // in an error, the word behind a colon is what was being done
	}
	said, remedy := split(text, signs...)
	if remedy == "" {
		for begin, further := range furtherRemedies {
			if strings.HasPrefix(text, begin) {
				p.used[begin], remedy = true, further
				said = strings.TrimSuffix(said, ".") + ". "
			}
		}
	}
	if remedy == "" {
		p.t.Errorf("a %s says no remedy: %q; let the sentence say what to do, or add it to furtherRemedies", kind, text)
		return
	}
	if kind != "" {
		kind = "*" + kind + "* "
	}
	p.line(wrapped("- " + kind + escaped(said) + "**" + escaped(remedy) + "**"))
}

// verbs begin the part of a sentence that says what to do.
var verbs = strings.Fields(`add allow bring change choose create delete deploy give keep leave let look make mend move name put raise remove rename request run scale
	send set stop take tell uninstall upload use wait write`)

// split parts a sentence behind what is wrong, where it begins to say what to do.
func split(text string, signs ...string) (said, remedy string) {
	for i := range text {
		for _, sign := range signs {
			if clause, ok := strings.CutPrefix(text[i:], sign); ok && orders(clause) {
				return text[:i+len(sign)], clause
			}
		}
	}
	return text, ""
}

// orders tells whether a clause begins with what to do, or with when to do it.
func orders(clause string) bool {
	for _, begin := range []string{"<suggestion>", "<what to do>", "`aws "} {
		if strings.HasPrefix(clause, begin) {
			return true
		}
	}
	clause = strings.TrimPrefix(clause, "or ")
	if condition, then, found := strings.Cut(clause, ", "); found && (strings.HasPrefix(condition, "if ") || strings.HasPrefix(condition, "to ")) {
		clause = then
	}
	first, _, _ := strings.Cut(strings.ToLower(clause), " ")
	return slices.Contains(verbs, strings.Trim(first, ","))
}

func (p *page) sentences(all []sentence) {
	p.line("\n## Problems and warnings\n")
	p.line("By the parameter that they stand under in the status. What is in \\<brackets> differs from case to case; what to do is bold.")
	by := map[string][]sentence{}
	for _, s := range all {
		if strings.Contains(s.text, "<refusal>") || strings.Contains(s.text, "<malformed>") || strings.HasSuffix(s.text, "<thing>") || strings.HasSuffix(s.text, "<problem>") {
			continue // told by its reasons, below
		}
		heading := s.parameter
		switch {
		case s.parameter == "":
			heading, s.text = "What Karpenter or Kubernetes refuses", "<path> "+s.text
		case strings.HasPrefix(s.parameter, "<"):
			heading = "Several parameters"
		}
		by[heading] = append(by[heading], s)
	}
	for _, heading := range slices.SortedFunc(maps.Keys(by), byParameter) {
		p.line("\n### " + heading + "\n")
		for _, s := range by[heading] {
			p.entry(s.kind, s.text)
		}
	}
}

// byParameter puts the headings that are no parameter's name first.
func byParameter(a, b string) int {
	if first, second := a == strings.ToLower(a), b == strings.ToLower(b); first != second {
		if first {
			return 1
		}
		return -1
	}
	return strings.Compare(a, b)
}

func (p *page) reasons(r reasons) {
	list := func(heading, about string, all []string) {
		p.line("\n### " + heading + "\n\n" + about + "\n")
		for _, reason := range all {
			p.line(wrapped("- … " + escaped(reason)))
		}
	}
	list("What is wrong with a value", "*problem* \\<name> is \\<value>; **allowed is \\<allowed>; write \\<example>**. It may say why:", r.values)
	list("What is wrong with JSON", "*problem* \\<name> is \\<value> and \\<reason>; **allowed is \\<allowed>; write, for example, \\<example>**. The reasons:", r.documents)
	list("What is wrong with a change request", "*problem* the change request \\<id> \\<reason>. **Nothing was written; send a corrected one.** The reasons:", r.requests)
}

func (p *page) waits(s *source) {
	p.line("\n## What a step waits for\n")
	p.line("The note of a step in `sawhorse watch`, and the reason of a `StepDeadlineExceeded`.")
	waits := s.waits()
	for _, step := range slices.Sorted(maps.Keys(waits)) {
		look := lookAt[step]
		if look == "" {
			p.t.Errorf("lookAt does not say what to do where step %s waits too long", step)
		}
		p.line("\n### Step " + step + "\n")
		for _, note := range waits[step] {
			p.line(wrapped("- " + escaped(note)))
		}
		p.line("\n" + wrapped("**"+look+"**"))
	}
	for step := range lookAt {
		if waits[step] == nil {
			p.t.Errorf("lookAt has step %s, which waits for nothing", step)
		}
	}
}

func (p *page) failures(s *source) {
	p.line("\n## Failures\n")
	p.line("The `error` of a failure in the status, and in the event `Rack Reconcile Failed`.\n")
	names := s.errorNames()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if failureRemedies[name] == "" {
			p.t.Errorf("failureRemedies does not say what to do about %s", name)
		}
		p.line(wrapped("- `" + name + "`: " + names[name] + " **" + failureRemedies[name] + "**"))
	}
	for name := range failureRemedies {
		if names[name] == "" {
			p.t.Errorf("failureRemedies has %s, which nothing raises", name)
		}
	}
	p.line("\nThe `reason` is what AWS or Kubernetes said, behind what Sawhorse was doing. These are Sawhorse's own:\n")
	for _, failure := range s.failures() {
		p.entry("", failure)
	}
}

// escaped keeps Markdown from taking <name> for a tag; in backticks it does not.
func escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("<", `\<`, "*", `\*`).Replace(parts[i])
	}
	return strings.Join(parts, "`")
}

// wrapped is a paragraph in lines of the documents' length.
func wrapped(text string) string {
	indent := ""
	if strings.HasPrefix(text, "- ") {
		indent = "  "
	}
	var out strings.Builder
	length := 0
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
		case length+1+len(word) > 148:
			out.WriteString("\n" + indent)
			length = len(indent)
		default:
			out.WriteString(" ")
			length++
		}
		out.WriteString(word)
		length += len(word)
	}
	return out.String()
}
