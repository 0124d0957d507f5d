package params

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Problem is a refusal or a warning for the user. Its message names the parameter and its value, says what is allowed,
// and what to write instead.
type Problem struct {
	// Parameter is the name under params/, or "rack" for the name of the rack itself.
	Parameter string `json:"parameter"`
	// Path is the place inside a JSON parameter, for example nodePool.limits.cpu.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// NewProblem formats a Problem. Its message is one printable line: unprintable characters in the arguments are escaped.
func NewProblem(parameter, path, format string, args ...any) Problem {
	sentence := fmt.Sprintf(format, args...)
	if strings.ContainsFunc(sentence, unprintable) {
		var line strings.Builder
		for _, r := range sentence {
			if unprintable(r) {
				escaped := strconv.QuoteRune(r)
				line.WriteString(escaped[1 : len(escaped)-1])
				continue
			}
			line.WriteRune(r)
		}
		sentence = line.String()
	}
	return Problem{Parameter: parameter, Path: path, Message: sentence}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
