package story

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// Typing is a command at the prompt of a session in a document, and the output that the document shows below it.
type Typing struct{ Command, Output string }

// Typed returns the commands of a session, with their continuation lines, and the output that follows each.
func Typed(session string) (all []Typing) {
	command, open := "", false
	for line := range strings.Lines(session) {
		first, prompt := strings.CutPrefix(strings.TrimLeft(line, " "), "$ ")
		switch {
		case prompt:
			command, open = first, true
		case open:
			command += line
		case len(all) > 0:
			all[len(all)-1].Output += line
		}
		if open && complete(command) {
			all, open = append(all, Typing{Command: strings.TrimSpace(command)}), false
		}
	}
	return all
}

// complete tells whether bash would run what has been typed so far, and not wait for another line. It only warns of a
// here-document without an end.
func complete(command string) bool {
	said, err := exec.Command("bash", "-n", "-c", command).CombinedOutput()
	return err == nil && len(said) == 0 && !strings.HasSuffix(command, "|\n") && !strings.HasSuffix(command, "\\\n")
}

var session = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// Document returns the script that types every command of a document's sessions, chapter by chapter, and compares what each
// prints with what the document shows. In the document, "…" stands for any text of a line, and a line "…" for any number of
// lines. Times, durations and the width of columns may differ. Files that commands write are beside the sandbox's kubeconfig.
func Document(path string) func(*Script) {
	return func(s *Script) {
		text, err := os.ReadFile(path)
		if err != nil {
			s.fail("%v", err)
		}
		typed := 0
		for _, part := range strings.Split(string(text), "\n## ") {
			title, _, _ := strings.Cut(part, "\n")
			s.Chapter(title, func() {
				for _, match := range session.FindAllStringSubmatch(part, -1) {
					for _, t := range Typed(match[1]) {
						s.follow(t)
						typed++
					}
				}
			})
		}
		s.verify(typed > 0, "commands of "+path, "", "some", "none", "")
		s.Summary()
	}
}

// follow types a command of a document, which prints what the document shows. Only one that is shown to print something,
// such as a refusal, may fail.
func (s *Script) follow(t Typing) {
	printed, err := s.show(`cd "$(dirname "$KUBECONFIG")" && ` + t.Command)
	if err != nil && t.Output == "" {
		s.fail("`%s` ended with %v", t.Command, err)
	}
	s.verify(shown(t.Output).MatchString(squeezed(printed)), "what it prints", "", strings.TrimSpace(t.Output), printed, "")
}

// shown matches the output that a document shows.
func shown(output string) *regexp.Regexp {
	var pattern strings.Builder
	for line := range strings.Lines(squeezed(output)) {
		switch text := strings.TrimSpace(line); text {
		case "…":
			pattern.WriteString(`(?:.*\n)*?`)
		default:
			pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*") + `\n`)
		}
	}
	return regexp.MustCompile(`\A` + pattern.String() + `\z`)
}

var (
	spaces = regexp.MustCompile(`[ \t]+`)
	// times matches 2026-11-26T19:56:46Z, 19:56:46, 102.4 s, 29s, 4m14s.
	times = regexp.MustCompile(`\b(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\dZ?\b|\b\d+\.\d s\b|\b(\d+[dhms])+\b`)
)

// squeezed is a text without the width of its columns, without empty lines, and with TIME in the place of times and durations.
// Each line ends with a line feed.
func squeezed(text string) string {
	var out strings.Builder
	for line := range strings.Lines(times.ReplaceAllString(text, "TIME")) {
		if line = strings.TrimSpace(spaces.ReplaceAllString(line, " ")); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
