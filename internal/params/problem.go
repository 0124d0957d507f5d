package params

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Problem is why something was refused (or, as a warning, what to know about it), for the user: a sentence that names the
// parameter and its value, what is allowed and what to write instead.
type Problem struct {
	// Parameter is the name under params/, or "rack" for the rack's own name.
	Parameter string `json:"parameter"`
	// Path is where inside a JSON parameter: nodePool.limits.cpu.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// NewProblem makes a Problem whose sentence is one printable line, whatever was quoted in it.
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
