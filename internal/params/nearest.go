package params

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Nearest is the known name that is the fewest edits away, whatever the letter case; empty where none is near.
func Nearest(name string, known []string) string {
	const longest = 64 // no name of ours or Karpenter's is that long
	name = name[:min(len(name), longest)]
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// DidYouMean is the end of a sentence about a name that is not in a list: the nearest one that is, or nothing.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" && near != name {
		return "; did you mean " + near + "?"
	}
	return ""
}

// suggestion is what to do about an unknown parameter.
func suggestion(name string) string {
	var known []string
	for _, p := range Table {
		known = append(known, p.Name)
	}
	if near := Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "delete it (sawhorse params lists the names there are)"
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// short quotes a value for a sentence, cut to what a reader needs to know it again.
func short(value string) string {
	const most = 60
	if len(value) > most {
		value = cut(value, most) + "…"
	}
	return strconv.Quote(value)
}

// cut is the beginning of a text, at most so many bytes, not cut inside a letter.
func cut(text string, most int) string {
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// sorted are the problems in one order, whatever order they were found in, each once.
func sorted(problems []Problem) []Problem {
	sort.SliceStable(problems, func(i, j int) bool {
		a, b := problems[i], problems[j]
		if a.Parameter != b.Parameter {
			return a.Parameter < b.Parameter
		}
		if a.Path != b.Path {
			return a.Path < b.Path
		}
		return a.Message < b.Message
	})
	return slices.Compact(problems)
}
