package karpenter_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

var update = flag.Bool("update", false, "write the documentation again")

// docs/karpenter-versions.md ends with what the catalogue says.
func TestDocumentationIsTheCatalogue(t *testing.T) {
	const path, heading = "../../docs/karpenter-versions.md", "## The versions\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	prose, tables, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("docs/karpenter-versions.md has no %q", heading)
	}
	want := markdown(t)
	if *update {
		if err := os.WriteFile(path, []byte(prose+heading+want), 0o644); err != nil {
			t.Fatal(err)
		}
		tables = want
	}
	if tables != want {
		t.Errorf("docs/karpenter-versions.md is not what the catalogue says; run go test ./internal/karpenter -run Documentation -update")
	}
}

// markdown returns the table of the versions, and what an upgrade to each one does.
func markdown(t *testing.T) string {
	var text strings.Builder
	text.WriteString(`
Actions, calls and CRDs are new if the version before in this table does not have them. If the version of a hash changes,
Karpenter computes another hash for an unchanged object.

| version | Kubernetes | new actions in the policies | new calls in the code | new CRDs | hash of NodePool, EC2NodeClass | image |
|---|---|---|---|---|---|---|
`)
	var notes strings.Builder
	type lists struct{ actions, calls, crds []string }
	var before lists
	for i, r := range karpenter.All() {
		definitions, err := r.CRDs()
		if err != nil {
			t.Fatal(err)
		}
		now := lists{actions(t, r), r.Calls, slices.Sorted(maps.Keys(definitions))}
		name, digest := r.Version, "digest not known"
		if name == karpenter.Default().Version {
			name += " (default)"
		}
		if r.Digest != "" {
			digest = "`" + r.Digest[:len("sha256:")+12] + "…`"
		}
		added := []string{"", "", ""}
		if i > 0 {
			added = []string{beyond(now.actions, before.actions), beyond(now.calls, before.calls), beyond(now.crds, before.crds)}
		}
		fmt.Fprintf(&text, "| %s | %s to %s | %s | %s, %s | %s |\n", name, r.Kubernetes.Oldest, r.Kubernetes.Newest, strings.Join(added, " | "),
			r.NodePool.Version, r.EC2NodeClass.Version, digest)
		if len(r.Upgrade) > 0 {
			fmt.Fprintf(&notes, "\n### Upgrading to %s\n\n", r.Version)
		}
		for _, note := range r.Upgrade {
			fmt.Fprint(&notes, wrapped(note.Text+" ("+note.Source+")"))
		}
		before = now
	}
	return text.String() + notes.String()
}

// actions returns the actions in a version's policies.
func actions(t *testing.T, r karpenter.Release) (all []string) {
	for line := range strings.Lines(strings.Join(statements(t, r), "\n")) {
		if action, ok := strings.CutPrefix(strings.TrimSpace(line), "may "); ok {
			all = append(all, action)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// beyond returns what is new in a sorted list.
func beyond(list, before []string) string {
	var added []string
	for _, one := range list {
		if !slices.Contains(before, one) {
			added = append(added, "`"+one+"`")
		}
	}
	return strings.Join(added, ", ")
}

// wrapped returns an item of a list in lines of at most 140 characters.
func wrapped(item string) string {
	var text strings.Builder
	line := "-"
	for word := range strings.FieldsSeq(item) {
		if len(line)+1+len(word) > 140 {
			text.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	return text.String() + line + "\n"
}
