package params

import (
	"sort"
	"strconv"
	"unicode/utf8"
)

// nearest suggests the known name that is the fewest edits away.
func nearest(name string) string {
	const longest = 64 // no parameter's name is that long
	name = name[:min(len(name), longest)]
	best, least := "", len(name)/2+1
	for _, p := range Table {
		if d := distance(name, p.Name); d < least {
			best, least = p.Name, d
		}
	}
	if best == "" {
		return "delete it (sawhorse params lists the names there are)"
	}
	return "did you mean " + best + "?"
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
		cut := most
		for cut > 0 && !utf8.RuneStart(value[cut]) {
			cut--
		}
		value = value[:cut] + "…"
	}
	return strconv.Quote(value)
}

func sortProblems(problems []Problem) {
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
}
