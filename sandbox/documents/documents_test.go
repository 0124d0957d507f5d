// Package documents checks the commands in docs/*.md and the pages beside them with the AWS CLI's own parser. It has only tests.
package documents

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

const root = "../.."

// tools are the commands in the documents that are executed. aws, kubectl and sawhorse are replaced by a recorder, and
// all other commands are missing.
var tools = []string{"base64", "bash", "cat", "cut", "grep", "head", "jq", "sed", "sort", "tr", "xargs"}

// recorder records the arguments of a call: their number, and each of them.
const recorder = `#!/bin/bash
printf '%s\0' "$#" "$@" >> "$RECORD"
echo arn:aws:iam::123456789012:role/x
`

// command is a call of aws, with the folder in which it is run and the document that contains it.
type command struct {
	Folder    string   `json:"folder"`
	Arguments []string `json:"arguments"`
	path      string
}

// The AWS CLI must accept every aws command in the documents: service, command, options, required options, the shape of
// their values, and the query.
func TestCommandsOfDocuments(t *testing.T) {
	var all []command
	for _, path := range documents(t) {
		folder := t.TempDir()
		for _, script := range scripts(t, path) {
			for _, arguments := range called(t, folder, script) {
				if !slices.ContainsFunc(all, func(c command) bool { return slices.Equal(c.Arguments, arguments) }) {
					all = append(all, command{folder, arguments, path})
				}
			}
		}
	}
	if len(all) < 80 {
		t.Fatalf("only %d commands: the test does not see them", len(all))
	}
	for i, complaint := range complaints(t, all) {
		if complaint != "" {
			t.Errorf("%s: aws %s: %s", all[i].path, strings.Join(all[i].Arguments, " "), complaint)
		}
	}
	t.Logf("%d commands", len(all))
}

// ofTheStack matches names of the stack's resources: Sawhorse-validate, Sawhorse-TableCD117FA1-….
var ofTheStack = regexp.MustCompile(`\bSawhorse-([A-Za-z0-9]+)`)

// Every such name in the documents must be in the template, or be the prefix of a logical id.
func TestNamesOfTheStack(t *testing.T) {
	template, err := os.ReadFile(root + "/.cache/cdk.out/Sawhorse.template.json")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, path := range documents(t) {
		for _, match := range ofTheStack.FindAllStringSubmatch(read(t, path), -1) {
			names++
			if !bytes.Contains(template, []byte(match[0]+`"`)) && !regexp.MustCompile(`(?m)^  "`+match[1]).Match(template) {
				t.Errorf("%s: the stack has no %s", path, match[0])
			}
		}
	}
	if names < 5 {
		t.Errorf("only %d names: the test does not see them", names)
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d documents: the test has lost them (%v)", len(paths), err)
	}
	return append(paths, root+"/README.md", root+"/CONTRIBUTING.md", root+"/examples/README.md")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	inline  = regexp.MustCompile("`(aws [^`\n]* -[^`\n]*)`") // without an option it is the name of a command
	arn     = regexp.MustCompile(`\bARN\b`)
	calling = regexp.MustCompile(`(?m)(^|[^.\w-])aws `) // and not the end of a name such as nodepools.karpenter.k8s.aws
)

// scripts returns the scripts in a document that contain aws: its code blocks, the prompts of blocks that also show
// output, and the code spans that begin with aws.
func scripts(t *testing.T, path string) (all []string) {
	t.Helper()
	language, block := "", ""
	fenced := false
	for line := range strings.Lines(read(t, path)) {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !fenced:
			fenced, language, block = true, fence, ""
		case isFence && language == "console":
			fenced = false
			for _, typing := range story.Typed(block) {
				all = append(all, typing.Command)
			}
		case isFence:
			fenced = false
			if language == "" || language == "sh" {
				all = append(all, block)
			}
		case fenced:
			block += line
		default:
			for _, match := range inline.FindAllStringSubmatch(line, -1) {
				all = append(all, arn.ReplaceAllString(match[1], exampleARN))
			}
		}
	}
	return slices.DeleteFunc(all, func(script string) bool { return !calling.MatchString(script) })
}

// exampleARN replaces the placeholder ARN: the AWS CLI requires at least 20 characters for an ARN.
const exampleARN = "arn:aws:iam::123456789012:x/x"

// called runs a script in a folder, and returns the arguments of its calls of aws.
func called(t *testing.T, folder, script string) (all [][]string) {
	t.Helper()
	path := t.TempDir()
	for _, tool := range tools {
		real, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(path, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for tool, does := range map[string]string{"aws": recorder, "kubectl": "#!/bin/bash\necho x\n", "sawhorse": "#!/bin/bash\necho x\n"} {
		if err := os.WriteFile(filepath.Join(path, tool), []byte(does), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	record := filepath.Join(path, "record")
	shell := exec.Command("bash", "-c", script)
	shell.Dir, shell.Env = folder, []string{"PATH=" + path, "RECORD=" + record, "LC_ALL=C.UTF-8"}
	said, _ := shell.CombinedOutput() // scripts may fail at a command that is missing here
	text, err := os.ReadFile(record)
	if err != nil {
		t.Errorf("no call of aws in\n%s\n%s", script, said)
		return nil
	}
	rest := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	for len(rest) > 0 {
		n := 0
		if err := json.Unmarshal([]byte(rest[0]), &n); err != nil {
			t.Fatal(err)
		}
		all, rest = append(all, rest[1:1+n]), rest[1+n:]
	}
	return all
}

// complaints returns the AWS CLI's error message for each of the commands, empty if it accepts the command.
func complaints(t *testing.T, all []command) (said []string) {
	t.Helper()
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	parser := exec.Command(root+"/.cache/venv/bin/python", "parse.py")
	parser.Env = append(os.Environ(), "AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	parser.Stdin, parser.Stderr = bytes.NewReader(input), os.Stderr
	output, err := parser.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(output, &said); err != nil || len(said) != len(all) {
		t.Fatalf("%d answers to %d commands: %v", len(said), len(all), err)
	}
	return said
}
