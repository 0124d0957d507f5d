package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Wrong use exits with 2, prints a sentence on stderr, and nothing on stdout.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, stdin, want string }{
		{"chek -", "", "unknown command \"chek\" for \"sawhorse\"\n\nDid you mean this?\n\tcheck\nSee `sawhorse --help`."},
		{"help chek", "", "Did you mean this?\n\tcheck\n"},
		{"check", "", "FILE is missing\nSee `sawhorse check --help`."},
		{"check - -", on(""), "there are 2 arguments; allowed: FILE\n"},
		{"check --bach -", on(""), "unknown flag: --bach; did you mean --batch?\n"},
		{"check -batch -", on(""), "in -batch; did you mean --batch?\n"},
		{"check nowhere.json", "", "sawhorse: open nowhere.json: no such file or directory\n"},
		{"check --batch nowhere.json", "", "open nowhere.json: no such file or directory"},
		{"check .", "", "is a directory"},
		{"check --batch .", "", "is a directory"},
		{"render", "", "FILE is missing"},
		{"render -o xml -", on(""), `invalid argument "xml" for "-o, --output" flag: allowed are json, yaml`},
		{"render -o", "", "flag needs an argument: 'o' in -o"},
		{"render --batch -o yaml -", on(""), "leave out -o yaml"},
		{"check --batch -o text -", on(""), "leave out -o text"},
		{"plan", "", "FILE is missing"},
		{"plan -o yaml -", on(""), "allowed are text, json"},
		{"plan --batch -", on(""), "unknown flag: --batch"},
		{"params prod", "", "for \"sawhorse params\""},
		{"params -o yaml", "", "allowed are markdown, json"},
		{"status", "", "RACK is missing"},
		{"status Prod", "", `the rack's name is "Prod"; allowed is a-z first`},
		{"watch a b", "", "there are 2 arguments; allowed: RACK"},
		{"register --rate 0 prod", "", "--rate 0 is no number of writes per second"},
		{"register --rate NaN prod", "", "--rate NaN is no number of writes per second"},
		{"register prod karpenter_cpu_limits", "", "did you mean karpenter_cpu_limit?"},
		{"register prod node_disk --all", "", "leave the names out"},
		{"register --rate fast prod", "", `invalid argument "fast" for "--rate" flag`},
		{"completion ksh", "", `there is no completion for "ksh"; allowed are bash, fish, powershell, zsh`},

		{"check -", "", "stdin: the input cannot be read as a JSON object: it is empty"},
		{"check -", "[]", "it does not begin with {"},
		{"check -", `{"rack":"demo"`, "it ends too early"},
		{"check -", `{"rack":"demo","params":{`, "it ends too early"},
		{"check -", `{"rack":"demo"}{}`, "something follows its end"},
		{"check -", `{"rack":"demo",}`, "invalid character '}'"},
		{"check -", `{"params":{}}`, "the input has no rack"},
		{"check -", `{"rack":null}`, "the input has no rack"},
		{"check -", `{"rack":7}`, "the input's rack is a number; allowed is text"},
		{"check -", `{"rack":"demo","parameters":{}}`, `the input has the field "parameters"; did you mean params?`},
		{"check -", `{"Rack":"demo"}`, `the input has the field "Rack"; did you mean rack?`},
		{"check -", `{"rack":"demo","zzzzzzzzz":1}`, "allowed are rack, params, previous, observed"},
		{"check -", `{"rack":"demo","rack":"prod"}`, `it has "rack" twice; keep one of them`},
		{"check -", on(`"karpenter_enabled":"false"`),
			`params cannot be read as a JSON object of names and texts: it has "karpenter_enabled" twice`},
		{"check -", on(`"karpenter_cpu_limit":7`), `stdin: the input's params.karpenter_cpu_limit is a number; allowed is text; write "7"`},
		{"check -", on(`"paused":true`), `params.paused is a bool; allowed is text; write "true"`},
		{"check -", on(`"karpenter_config":{"nodePool": {"weight": 5}}`),
			`params.karpenter_config is an object; allowed is text; write "{\"nodePool\":{\"weight\":5}}"`},
		{"check -", on(`"a":1,"b":{},"c":[],"karpenter_arch":["amd64"]`), `params.a is a number`}, // always the first by name
		{"check -", `{"rack":"demo","params":["a"]}`, "params cannot be read as a JSON object of names and texts: it does not begin with {"},
		{"check -", onWith("", `"previous":{"karpenter_cpu_limit":7}`), `previous.karpenter_cpu_limit is a number; allowed is text; write "7"`},
		{"check -", onWith("", `"observed":[]`), "the input's observed is an array; allowed is an object"},
		{"check -", onWith("", `"observed":{"nodegroups":{}}`), "observed.nodegroups is an object; allowed is an array"},
		{"check -", onWith("", `"observed":{"nodegroups":[{"scalingConfig":{"minSize":"1"}}]}`),
			"observed.nodegroups.scalingConfig.minSize is text; allowed is a whole number"},
		{"check -", onWith("", `"observed":{"cluster":{"version":"1.33"},"cluster":{}}`),
			`the input's observed has "cluster" twice; keep one of them`},
		{"check -", onWith("", `"observed":{"nodegroups":[{"labels":{"a":"1","a":"2"}}]}`),
			`the input's observed.nodegroups[0].labels has "a" twice; keep one of them`},
		{"check -", onWith("", `"observed":{"nodegroup":[]}`), `the input's observed has the field "nodegroup"; did you mean nodegroups?`},
		{"check -", onWith("", `"observed":{"nodeGroups":[]}`), `observed has the field "nodeGroups"; did you mean nodegroups?`},
		{"plan -", onWith("", `"observed":{"nodeclaim":[]}`), `observed has the field "nodeclaim"; did you mean nodeclaims?`},
		{"check -", onWith("", `"observed":{"cluster":{"verison":"1.35"}}`), `observed.cluster has the field "verison"; did you mean version?`},
		{"check -", onWith("", `"observed":{"pools":{"workload":{"node":12}}}`),
			`observed.pools.workload has the field "node"; did you mean nodes?`},
		{"check -", onWith("", `"observed":{"subnets":[{"id":"subnet-1"},{"zzzzzzz":1}]}`),
			`observed.subnets[1] has the field "zzzzzzz"; allowed are `},
		{"render -", `{"rack":7}`, "the input's rack is a number"},
		{"plan -", `{"rack":7}`, "the input's rack is a number"},
	} {
		t.Run(c.args+c.stdin, func(t *testing.T) {
			if got := sawhorse(t, c.stdin, strings.Fields(c.args)...); got.code != 2 || got.stdout != "" ||
				!strings.HasPrefix(got.stderr, "sawhorse: ") || !strings.Contains(got.stderr, c.want) {
				t.Errorf("%+v\nwant %q", got, c.want)
			}
		})
	}
}

func TestFlagsBeforeAndBehindTheFile(t *testing.T) {
	t.Parallel()
	path := file(t, on(""))
	for _, args := range [][]string{
		{"render", "-o", "yaml", path}, {"render", path, "-o", "yaml"}, {"render", "--output=yaml", path},
		{"render", path, "--output", "yaml"}, {"render", path, "-o=yaml"}, {"render", "-o", "yaml", "--", path},
	} {
		if got := sawhorse(t, "", args...).ends(t, 0); !strings.HasPrefix(got.stdout, "apiVersion: ") {
			t.Errorf("%v: %s", args, got.stdout)
		}
	}
	for _, args := range [][]string{{"check", "--batch", "-"}, {"check", "-", "--batch"}} {
		if got := sawhorse(t, on("")+"\n"+on(""), args...).ends(t, 0); strings.Count(got.stdout, "\n") != 2 {
			t.Errorf("%v: %s", args, got.stdout)
		}
	}
	if got := sawhorse(t, "", "plan", path, "-o", "json").ends(t, 0); !strings.HasPrefix(got.stdout, "{") {
		t.Error(got.stdout)
	}
}

// subcommands returns the commands of the program, without those of cobra.
func subcommands() (all []*cobra.Command) {
	for _, c := range root().Commands() {
		if c.Name() != "help" && c.Name() != "completion" {
			all = append(all, c)
		}
	}
	return all
}

// Every command and every flag explains itself, by each of the usual ways to ask.
func TestHelp(t *testing.T) {
	t.Parallel()
	general := sawhorse(t, "", "help").ends(t, 0).stdout
	for _, args := range [][]string{{}, {"--help"}, {"-h"}} {
		if got := sawhorse(t, "", args...).ends(t, 0).stdout; got != general {
			t.Errorf("%s: %s", args, got)
		}
	}
	printed := func(args ...string) string { // as the command does, which takes a process for each
		var out strings.Builder
		c := root()
		c.SetOut(&out)
		c.SetArgs(args)
		if err := c.Execute(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		return out.String()
	}
	for _, c := range subcommands() {
		if !regexp.MustCompile(`(?m)^  ` + c.Name() + ` +` + c.Short + `$`).MatchString(general) {
			t.Errorf("help has no line for %s: %s", c.Name(), general)
		}
		text := printed("help", c.Name())
		if !strings.HasPrefix(text, c.Long) || !strings.Contains(text, "\nUsage:\n  sawhorse "+c.Use) {
			t.Errorf("help %s: %s", c.Name(), text)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s does not explain --%s", c.Name(), f.Name)
			}
		})
		for _, args := range [][]string{{c.Name(), "--help"}, {c.Name(), "-h"}, {c.Name(), "file", "--help"}} {
			if got := printed(args...); got != text {
				t.Errorf("%v: %s", args, got)
			}
		}
	}
}

func TestParams(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/parameters.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"params"}, {"params", "-o", "markdown"}} {
		if got := sawhorse(t, "", args...).ends(t, 0).stdout; got != string(document) {
			t.Errorf("%v is not docs/parameters.md", args)
		}
	}
	all := decoded[[]map[string]any](t, sawhorse(t, "", "params", "-o", "json").ends(t, 0).stdout)
	for _, p := range all {
		for _, field := range []string{"name", "type", "pattern", "description"} {
			if text, _ := p[field].(string); text == "" {
				t.Errorf("no %s in %v", field, p)
			}
		}
		if p["default"] == nil && p["absent"] == nil {
			t.Errorf("nothing says what an absent %s means", p["name"])
		}
	}
	if !slices.ContainsFunc(all, func(p map[string]any) bool { return p["name"] == "karpenter_cpu_limit" && p["default"] == "100" }) {
		t.Errorf("%v", all)
	}
}

// Each shell accepts its script.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []struct{ name, check string }{{"bash", "-n"}, {"zsh", "-n"}, {"fish", "--no-execute"}} {
		script := sawhorse(t, "", "completion", shell.name).ends(t, 0).stdout
		if !strings.Contains(script, "__complete") {
			t.Errorf("%s: %s", shell.name, script)
		}
		if _, err := exec.LookPath(shell.name); err != nil {
			if shell.name == "bash" {
				t.Fatal(err)
			}
			continue // most machines have no zsh and fish
		}
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		execute(t, exec.Command(shell.name, shell.check, path), "").ends(t, 0)
	}
}

// Compares what the completion scripts ask the command for. The number is that of cobra's ShellCompDirective: 4 means
// no files.
func TestCompletes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"re"}, "register render :4"},
		{[]string{"help", "pl"}, "plan :4"},
		{[]string{"check", "--b"}, "--batch :4"},
		{[]string{"check", ""}, ":0"}, // files
		{[]string{"plan", "-o", ""}, "text json :4"},
		{[]string{"render", "rack.json", "-o", ""}, "json yaml :4"},
		{[]string{"render", "rack.json", "--output", ""}, "json yaml :4"}, // the shell takes those that begin as what was typed
		{[]string{"completion", ""}, "bash fish powershell zsh :4"},
		{[]string{"register", "prod", "--"}, "--all --cluster --help --output --rate :4"},
		{[]string{"register", ""}, ":4"},
		{[]string{"watch", ""}, ":4"},
		{[]string{"status", "prod", "--w"}, "--wait :4"},
	} {
		got := sawhorse(t, "", append([]string{"__completeNoDesc"}, c.words...)...)
		if joined := strings.Join(strings.Fields(got.stdout), " "); got.code != 0 || joined != c.want {
			t.Errorf("%q: %q, want %q", c.words, joined, c.want)
		}
	}
}

// register completes the names of parameters that have not been given yet.
func TestParametersComplete(t *testing.T) {
	t.Parallel()
	all := strings.Fields(sawhorse(t, "", "__completeNoDesc", "register", "prod", "").stdout)
	rest := strings.Fields(sawhorse(t, "", "__completeNoDesc", "register", "prod", "karpenter_cpu_limit", "").stdout)
	if len(all) != len(params.Table)+1 || len(rest) != len(all)-1 || !slices.Contains(all, "karpenter_cpu_limit") ||
		slices.Contains(rest, "karpenter_cpu_limit") {
		t.Errorf("%q\n%q", all, rest)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := decoded[versions](t, sawhorse(t, "", "version", "-o", "json").ends(t, 0).stdout)
	if got.Version != version() || got.Version == "" || got.Karpenter != ownership.KarpenterVersion || got.Kubernetes != "1.26 to 1.35" {
		t.Errorf("%+v", got)
	}
	text := sawhorse(t, "", "version").ends(t, 0).stdout
	for _, want := range []string{"sawhorse   " + got.Version + "\n", "Karpenter  " + got.Karpenter + "\n",
		"Kubernetes " + got.Kubernetes + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q has no %q", text, want)
		}
	}
	if short := sawhorse(t, "", "--version").ends(t, 0).stdout; short != "sawhorse version "+got.Version+"\n" {
		t.Errorf("%q", short)
	}
}
