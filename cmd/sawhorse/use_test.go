package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Wrong use exits with 2, prints a sentence on stderr, and nothing on stdout.
func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ args, stdin, want string }{
		{"", "", "usage: sawhorse COMMAND\n"},
		{"chek -", "", `there is no command "chek"; did you mean check?`},
		{"help chek", "", "did you mean check?"},
		{"check", "", "usage: sawhorse check [--batch] FILE|-"},
		{"check - -", on(""), "usage: sawhorse check [--batch] FILE|-"},
		{"check --bach -", on(""), "flag provided but not defined: -bach\nusage: sawhorse check"},
		{"check nowhere.json", "", "sawhorse: open nowhere.json: no such file or directory\n"},
		{"check --batch nowhere.json", "", "open nowhere.json: no such file or directory"},
		{"check .", "", "is a directory"},
		{"check --batch .", "", "is a directory"},
		{"render", "", "usage: sawhorse render"},
		{"render -o xml -", on(""), "-o xml is no format\nusage: sawhorse render"},
		{"render -o", "", "flag needs an argument: -o"},
		{"render --batch -o yaml -", on(""), "leave out -o yaml"},
		{"plan", "", "usage: sawhorse plan"},
		{"plan -o yaml -", on(""), "-o yaml is no format\nusage: sawhorse plan"},
		{"plan --batch -", on(""), "flag provided but not defined: -batch"},
		{"params prod", "", "usage: sawhorse params"},
		{"params -o yaml", "", "-o yaml is no format"},
		{"status", "", "usage: sawhorse status RACK"},
		{"status Prod", "", `the rack's name is "Prod"; allowed is a-z first`},
		{"watch a b", "", "usage: sawhorse watch RACK"},
		{"register --rate 0 prod", "", "--rate 0 is no number of writes a second"},
		{"register prod karpenter_cpu_limits", "", "did you mean karpenter_cpu_limit?"},
		{"register prod node_disk --all", "", "leave the names out"},
		{"register --rate fast prod", "", `invalid value "fast" for flag -rate`},
		{"completion", "", "usage: sawhorse completion bash|zsh|fish"},
		{"completion ksh", "", `there is no completion for "ksh"`},

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
		{"check -", on(`"karpenter_enabled":"false"`), `params cannot be read as a JSON object of names and texts: it has "karpenter_enabled" twice`},
		{"check -", on(`"karpenter_cpu_limit":7`), `stdin: the input's params.karpenter_cpu_limit is a number; allowed is text; write "7"`},
		{"check -", on(`"paused":true`), `params.paused is a bool; allowed is text; write "true"`},
		{"check -", on(`"karpenter_config":{"nodePool": {"weight": 5}}`), `params.karpenter_config is an object; allowed is text; write "{\"nodePool\":{\"weight\":5}}"`},
		{"check -", on(`"a":1,"b":{},"c":[],"karpenter_arch":["amd64"]`), `params.a is a number`}, // always the first by name
		{"check -", `{"rack":"demo","params":["a"]}`, "params cannot be read as a JSON object of names and texts: it does not begin with {"},
		{"check -", onWith("", `"previous":{"karpenter_cpu_limit":7}`), `previous.karpenter_cpu_limit is a number; allowed is text; write "7"`},
		{"check -", onWith("", `"observed":[]`), "the input's observed is an array; allowed is an object"},
		{"check -", onWith("", `"observed":{"nodegroups":{}}`), "observed.nodegroups is an object; allowed is an array"},
		{"check -", onWith("", `"observed":{"nodegroups":[{"scalingConfig":{"minSize":"1"}}]}`), "observed.nodegroups.scalingConfig.minSize is text; allowed is a whole number"},
		{"render -", `{"rack":7}`, "the input's rack is a number"},
		{"plan -", `{"rack":7}`, "the input's rack is a number"},
	} {
		t.Run(c.args+c.stdin, func(t *testing.T) {
			if got := sawhorse(t, c.stdin, strings.Fields(c.args)...); got.code != 2 || got.stdout != "" || !strings.HasPrefix(got.stderr, "sawhorse: ") || !strings.Contains(got.stderr, c.want) {
				t.Errorf("%+v\nwant %q", got, c.want)
			}
		})
	}
}

func TestFlagsBeforeAndBehindTheFile(t *testing.T) {
	path := file(t, on(""))
	for _, args := range [][]string{
		{"render", "-o", "yaml", path}, {"render", path, "-o", "yaml"}, {"render", "--o=yaml", path}, {"render", path, "-o=yaml"}, {"render", "-o", "yaml", "--", path},
	} {
		if got := sawhorse(t, "", args...).ends(t, 0); !strings.HasPrefix(got.stdout, "apiVersion: ") {
			t.Errorf("%v: %s", args, got.stdout)
		}
	}
	for _, args := range [][]string{{"check", "--batch", "-"}, {"check", "-", "--batch"}, {"check", "-batch", "-"}} {
		if got := sawhorse(t, on("")+"\n"+on(""), args...).ends(t, 0); strings.Count(got.stdout, "\n") != 2 {
			t.Errorf("%v: %s", args, got.stdout)
		}
	}
	if got := sawhorse(t, "", "plan", path, "-o", "json").ends(t, 0); !strings.HasPrefix(got.stdout, "{") {
		t.Error(got.stdout)
	}
}

func TestHelp(t *testing.T) {
	general := sawhorse(t, "", "help").ends(t, 0).stdout
	for _, args := range []string{"--help", "-h"} {
		if got := sawhorse(t, "", args).ends(t, 0).stdout; got != general {
			t.Errorf("%s: %s", args, got)
		}
	}
	for _, c := range commands() {
		if !strings.Contains(general, "\n  "+c.name+" "+c.args+" ") {
			t.Errorf("help has no line for %s: %s", c.name, general)
		}
		text := sawhorse(t, "", "help", c.name).ends(t, 0).stdout
		if !strings.HasPrefix(text, "usage: sawhorse "+c.name+" "+c.args+"\n") {
			t.Errorf("help %s: %s", c.name, text)
		}
		for _, f := range c.flags {
			if !strings.Contains(text, "\n  "+f+" ") || !strings.Contains(c.args, f) {
				t.Errorf("help %s does not explain %s: %s", c.name, f, text)
			}
		}
		if explained := slices.Contains(c.flags, "--batch"); strings.Contains(text, "--batch") != explained {
			t.Errorf("help %s is about a flag that it does not have: %s", c.name, text)
		}
		for _, args := range [][]string{{c.name, "--help"}, {c.name, "-h"}, {c.name, "file", "--help"}} {
			if got := sawhorse(t, "", args...).ends(t, 0).stdout; got != text {
				t.Errorf("%v: %s", args, got)
			}
		}
	}
}

func TestParams(t *testing.T) {
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

// completed returns bash's completions for a line whose last word is being typed.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	script := `eval "$(cat)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sawhorse; printf '%s\n' "${COMPREPLY[@]}"`
	command := exec.Command("bash", append([]string{"-euc", script, "bash"}, words...)...)
	command.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(command.Dir, "rack.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.Fields(execute(t, command, sawhorse(t, "", "completion", "bash").stdout).ends(t, 0).stdout)
}

func TestCompletion(t *testing.T) {
	for _, shell := range []struct{ name, check string }{{"bash", "-n"}, {"zsh", "-n"}, {"fish", "--no-execute"}} {
		script := sawhorse(t, "", "completion", shell.name).ends(t, 0).stdout
		for _, c := range commands() {
			if !strings.Contains(script, c.name) {
				t.Errorf("%s: nothing completes %s", shell.name, c.name)
			}
			for _, word := range slices.Concat(c.flags, c.formats) {
				if !strings.Contains(script, strings.TrimLeft(word, "-")) {
					t.Errorf("%s: nothing completes %s %s", shell.name, c.name, word)
				}
			}
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

func TestBashCompletes(t *testing.T) {
	var all []string
	for _, c := range commands() {
		all = append(all, c.name)
	}
	for _, c := range []struct{ words, want []string }{
		{[]string{"sawhorse", ""}, append(slices.Clone(all), "help")},
		{[]string{"sawhorse", "re"}, []string{"render", "register"}},
		{[]string{"sawhorse", "help", ""}, all},
		{[]string{"sawhorse", "check", "--"}, []string{"--batch"}},
		{[]string{"sawhorse", "check", "ra"}, []string{"rack.json"}},
		{[]string{"sawhorse", "plan", "-o", ""}, []string{"text", "json"}},
		{[]string{"sawhorse", "render", "rack.json", "-o", "y"}, []string{"yaml"}},
		{[]string{"sawhorse", "completion", ""}, shells},
		{[]string{"sawhorse", "register", "prod", "--"}, []string{"--all", "--cluster", "--rate"}},
		{[]string{"sawhorse", "watch", ""}, nil},
		{[]string{"sawhorse", "status", "prod", "--"}, []string{"--wait"}},
		{[]string{"sawhorse", "check", "a word", "--b"}, []string{"--batch"}},
	} {
		if got := completed(t, c.words...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}
