package params

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Nearest returns the known name with the fewest edits from name, ignoring letter case, or "" if none is near.
func Nearest(name string, known []string) string {
	const longest = 64 // no name in Sawhorse or Karpenter is longer
	name = name[:min(len(name), longest)]
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// DidYouMean returns the end of a sentence about an unknown name: it suggests the nearest known name, or is empty.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" && near != name {
		return "; did you mean " + near + "?"
	}
	return ""
}

// suggestion returns what to do about an unknown parameter.
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

// distance is the Levenshtein distance in bytes.
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

// short quotes a value for a sentence, cut to 60 bytes.
func short(value string) string {
	const most = 60
	if len(value) > most {
		value = cut(value, most) + "…"
	}
	return strconv.Quote(value)
}

// cut returns the first bytes of a text, at most the given number, without splitting a character.
func cut(text string, most int) string {
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// sorted sorts the problems and removes duplicates.
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
