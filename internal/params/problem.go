package params

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sawhorse-io/sawhorse/events"
)

// Problem is a refusal or a warning for the user, in the form that events have. Its message names the parameter and its
// value, says what is allowed, and what to write instead.
type Problem = events.Problem

// NewProblem formats a Problem. Its message is one printable line: unprintable characters in the arguments are escaped,
// and so are bytes that are not UTF-8, in the name and the path too.
func NewProblem(parameter, path, format string, args ...any) Problem {
	valid := func(rune) bool { return false }
	return Problem{
		Parameter: escape(parameter, valid), Path: escape(path, valid), Message: escape(fmt.Sprintf(format, args...), unprintable),
	}
}

// escape escapes some characters of a text, and bytes that are not UTF-8, as Go's literals have them.
func escape(text string, some func(rune) bool) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, some) {
		return text
	}
	var line strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&line, `\x%02x`, text[0])
		case some(r):
			escaped := strconv.QuoteRune(r)
			line.WriteString(escaped[1 : len(escaped)-1])
		default:
			line.WriteRune(r)
		}
		text = text[size:]
	}
	return line.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
