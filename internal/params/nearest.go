package params

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// synonyms maps names that other tools use to the name used here, if counting edits cannot find it.
var synonyms = map[string]string{
	"x86_64": "amd64", "x86": "amd64", "x64": "amd64", "intel": "amd64", "aarch64": "arm64", "arm": "arm64", "graviton": "arm64",
	"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false", "compute": "c", "general": "m",
	"memory": "r", "gpu": "nvidia.com/gpu",
}

// Nearest returns the known name with the fewest edits from name, ignoring letter case, or "" if none is near. Of several
// it returns the first in alphabetical order, whatever the order of known.
func Nearest(name string, known []string) string {
	const longest = 64 // no name in Sawhorse or Karpenter is longer
	name = name[:min(len(name), longest)]
	if meant := synonyms[strings.ToLower(name)]; slices.Contains(known, meant) {
		return meant
	}
	best, least := "", len(name)/2+1
	for _, k := range known {
		if len(k)-len(name) > least || len(name)-len(k) > least {
			continue // at least that many bytes differ
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least || d == least && best != "" && k < best {
			best, least = k, d
		}
	}
	return best
}

// DidYouMean returns the end of a sentence about an unknown name: it suggests the nearest known name, or says
// otherwise.
func DidYouMean(name string, known []string, otherwise string) string {
	if near := Nearest(name, known); near != "" && near != name {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// nearest returns the value with each element replaced by the nearest of the words, or "" if one has none.
func (v Value) nearest(value string) string {
	var all []string
	const most = 10
	for element := range strings.SplitSeq(value, ",") {
		near := Nearest(strings.TrimSpace(element), v.Words)
		if near == "" || len(all) >= most {
			return ""
		}
		if !slices.Contains(all, near) {
			all = append(all, near)
		}
	}
	return strings.Join(all, ",")
}

// punctuation matches the punctuation of a JSON array of strings, inUnit a number with a unit of size, ofType the size after
// an instance family, ofFamily the family before a size, and shortHour an hour of one digit.
var (
	punctuation = regexp.MustCompile(`[\[\]"']`)
	inUnit      = regexp.MustCompile(`^([1-9][0-9]*) ?(?:Gi?B?|vCPUs?|cpus?)$`)
	ofType      = regexp.MustCompile(`\.[a-z0-9-]+`)
	ofFamily    = regexp.MustCompile(`[a-z0-9-]+\.`)
	shortHour   = regexp.MustCompile(`(^|[ -])([0-9]:)`)
)

// respelled returns the values that may be meant by a value in another tool's syntax.
func (v Value) respelled(value string) []string {
	switch v.Type {
	case "list":
		plain := strings.ReplaceAll(punctuation.ReplaceAllString(value, ""), " ", "")
		if v.Example == sizesValue.Example {
			sizes, _ := ordered(ofFamily.ReplaceAllString(plain, ""))
			return []string{plain, strings.Join(sizes, ",")}
		}
		return []string{plain, ofType.ReplaceAllString(plain, "")}
	case "integer":
		if found := inUnit.FindStringSubmatch(value); found != nil {
			return found[1:]
		}
	case "version":
		plain := strings.TrimLeft(strings.ToLower(strings.TrimSpace(value)), "v=")
		return []string{plain, nearestVersion(plain), nearestVersion(plain + ".0"), nearestVersion(plain + ".0.0")}
	case "schedule":
		plain := shortHour.ReplaceAllString(spaced.ReplaceAllString(strings.Join(strings.Fields(value), " "), "$1"), "${1}0$2")
		upper := strings.ToUpper(plain)
		return []string{plain, strings.ToLower(plain), upper, "MON-SUN " + upper}
	case "labels", "tags":
		if !strings.Contains(value, "=") {
			return []string{strings.ReplaceAll(strings.Trim(strings.ReplaceAll(value, `"`, ""), "{} "), ":", "=")}
		}
	case "taints":
		if colon := strings.LastIndexByte(value, ':'); colon >= 0 {
			return []string{value[:colon+1] + Nearest(value[colon+1:], effects)}
		}
	}
	return nil
}

func suggestion(name string) string {
	var known []string
	for _, p := range Table {
		known = append(known, p.Name)
	}
	return DidYouMean(name, known, "delete it (sawhorse params lists the names there are)")
}

// distance returns the Levenshtein distance in bytes.
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

// Quoted quotes a value for a sentence, cut to 60 bytes.
func Quoted(value string) string { return strconv.Quote(cut(value)) }

// cut returns a text or, if it has more than 60 bytes, its beginning with an ellipsis. It does not split a character.
func cut(text string) string {
	most := 60
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// sorted sorts the problems and removes duplicates.
func sorted(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Parameter, b.Parameter), strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}
