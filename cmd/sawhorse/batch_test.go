package main

import (
	"fmt"
	"strings"
	"testing"
)

func answers(t *testing.T, r ran) []answer {
	t.Helper()
	var all []answer
	for text := range strings.Lines(r.stdout) {
		all = append(all, decoded[answer](t, text))
	}
	return all
}

// The cost of validation varies from line to line. If answers were printed as soon as they are ready, they would be in
// another order.
func TestBatchKeepsTheOrder(t *testing.T) {
	t.Parallel()
	count := 1000
	if testing.Short() {
		count = 200
	}
	var input strings.Builder
	for i := range count {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&input, `{"rack":"demo","params":{"unknown-parameter-%d":"x"}}`+"\n", i)
		case 1:
			var pools []string
			for n := range 20 {
				pools = append(pools, fmt.Sprintf(`{\"name\":\"p%d\",\"cpu_limit\":%d}`, n, i+n))
			}
			fmt.Fprintln(&input, on(fmt.Sprintf(`"additional_karpenter_nodepools_config":"[%s]","wrong-%d":"x"`, strings.Join(pools, ","), i)))
		case 2:
			fmt.Fprintf(&input, `{"rack":"RACK-%d"}`+"\n", i)
		default:
			fmt.Fprintf(&input, `{"rack":"demo","rakc%d":1}`+"\n", i)
		}
	}
	got := answers(t, sawhorse(t, input.String(), "check", "--batch", "-").ends(t, 1))
	if len(got) != count {
		t.Fatalf("%d answers for %d lines", len(got), count)
	}
	for i, a := range got {
		if text := fmt.Sprint(a.Problems); a.Accepted || len(a.Problems) != 1 || !strings.Contains(text, fmt.Sprint(i)) {
			t.Fatalf("line %d has the answer %+v", i, a)
		}
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	const good, bad = `{"rack":"demo"}`, `{"rack":"demo","params":{"paused":"maybe"}}`
	const yes, no = `{"accepted":true,"problems":[],"warnings":[]}`,
		`{"accepted":false,"problems":[{"parameter":"paused","message":"paused is \"maybe\"; allowed is true or false; ` +
			`write, for example, true"}],"warnings":[]}`
	for _, c := range []struct {
		what, input string
		code        int
		want        []string // parts of each answer
	}{
		{"all good", good + "\n" + good + "\n", 0, []string{yes, yes}},
		{"no line break at the end", good + "\n" + good, 0, []string{yes, yes}},
		{"line breaks of Windows", good + "\r\n" + bad + "\r\n", 1, []string{yes, no}},
		{"a mark before", "\ufeff" + good + "\r\n" + bad, 1, []string{yes, no}},
		{"one is refused", good + "\n" + bad + "\n" + good + "\n", 1, []string{yes, no, yes}},
		{"no line", "", 0, nil},
		{"empty lines are no lines", "\n\n" + good + "\n \n", 0, []string{yes}},
		{"a malformed line is answered in its place", good + "\n" + `{"rack":` + "\n" + good + "\n", 1,
			[]string{yes, `"parameter":"input","message":"the input cannot be read as a JSON object: it ends too early"`, yes}},
		{"so is any other that is no input", strings.Join([]string{`7`, `[]`, `null`, `{}`, `{"rack":"demo"} {"rack":"demo"}`,
			`{"rack":"demo","prams":{}}`, `{"rack":"demo","params":{"karpenter_cpu_limit":7}}`}, "\n"), 1,
			[]string{"does not begin with {", "does not begin with {", "does not begin with {", "has no rack", "something follows its end",
				"did you mean params?", `write \"7\"`}},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, source := range []ran{sawhorse(t, c.input, "check", "--batch", "-"), sawhorse(t, "", "check", file(t, c.input), "--batch")} {
				var got []string
				for text := range strings.Lines(source.ends(t, c.code).stdout) {
					decoded[answer](t, text)
					got = append(got, text)
				}
				if len(got) != len(c.want) {
					t.Fatalf("%q, want %q", got, c.want)
				}
				for i, want := range c.want {
					if !strings.Contains(got[i], want) || strings.Contains(want, `"accepted"`) && got[i] != want+"\n" {
						t.Errorf("answer %d: %s\nwant %s", i, got[i], want)
					}
				}
			}
		})
	}
}

// A line in a batch gets the same result as the same input alone.
func TestBatchJudgesAsOneByOne(t *testing.T) {
	t.Parallel()
	inputs := []string{
		on(""), on(`"karpenter_arch":"x86"`), on(`"karpenter_node_labels":"karpenter.sh/x=y"`), on(`"karpenter_disruption_budget_nodes":"0"`),
		`{"rack":"demo","params":{},"previous":{"karpenter_auth_mode":"true"}}`, on(`"karpenter_config":"{\"nodePool\":{\"weight\":300}}"`),
	}
	batch := answers(t, sawhorse(t, strings.Join(inputs, "\n"), "check", "--batch", "-").ends(t, 1))
	for i, input := range inputs {
		if alone := sawhorse(t, input, "check", "-").answer(t); fmt.Sprint(batch[i]) != fmt.Sprint(alone) {
			t.Errorf("%s\nin a batch %+v\nalone      %+v", input, batch[i], alone)
		}
	}
}
