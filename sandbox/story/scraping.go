package story

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// scrapes is the time between two scrapes, in seconds.
const scrapes = 5

// scraping is what Karpenter's controllers count while a script goes on.
type scraping struct {
	script *Script
	// pid is the id of the process that scrapes.
	pid string
}

// scrapedFile is the file in which it is written.
const scrapedFile = `"$(dirname "$KUBECONFIG")/scraped"`

// scrape begins to scrape, for a quarter of an hour at most.
func scrape(s *Script) scraping {
	return scraping{s, s.Output(fmt.Sprintf(`(for i in $(seq 180); do sleep %d; echo "at $(date +%%s)"; %s; done) > %s 2> /dev/null & echo $!`,
		scrapes, scraped, scrapedFile))}
}

// end returns all series with their values, one every five seconds, in promtool's notation. Of the two controllers the larger value
// counts: the one that does not lead counts next to nothing.
func (r scraping) end() (all []string) {
	values, began, column, whole := map[string][]string{}, 0, 0, []int{}
	for line := range strings.Lines(r.script.Output("kill " + r.pid + "; cat " + scrapedFile)) {
		line = strings.TrimSpace(line)
		if at, is := strings.CutPrefix(line, "at "); is {
			seconds, _ := strconv.Atoi(at)
			if began == 0 {
				began = seconds
			} else {
				whole = append(whole, column)
			}
			column = (seconds - began) / scrapes
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		has := values[m[1]]
		for len(has) <= column {
			has = append(has, "_")
		}
		has[column] = larger(has[column], m[2])
		values[m[1]] = has
	}
	for _, series := range slices.Sorted(maps.Keys(values)) {
		all = append(all, series+" "+repeats(gone(values[series], whole)))
	}
	return all
}

// gone marks where a series is not there any more, as Prometheus does: at the first scrape without it.
func gone(values []string, scrapes []int) []string {
	there := false
	for _, column := range scrapes {
		for len(values) <= column {
			values = append(values, "_")
		}
		switch {
		case values[column] != "_":
			there = true
		case there:
			values[column], there = "stale", false
		}
	}
	return values
}

// larger returns the larger one of two values. One may be missing.
func larger(a, b string) string {
	one, missing := strconv.ParseFloat(a, 64)
	if other, _ := strconv.ParseFloat(b, 64); missing != nil || other > one {
		return b
	}
	return a
}

// repeats writes "1 1 1 2" as "1x2 2".
func repeats(values []string) string {
	var all []string
	for i := 0; i < len(values); {
		n := 1
		for i+n < len(values) && values[i+n] == values[i] {
			n++
		}
		if i += n; n == 1 {
			all = append(all, values[i-1])
		} else {
			all = append(all, fmt.Sprintf("%sx%d", values[i-1], n-1))
		}
	}
	return strings.Join(all, " ")
}
