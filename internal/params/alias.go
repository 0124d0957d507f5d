package params

import (
	"fmt"
	"strings"
	"time"
)

// aliasValue describes one alias of AMIs for each family.
var aliasValue = Value{
	Type: "text",
	Pattern: commas(`(al2023@(v20[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])|` + patternLatest + `)|` +
		`bottlerocket@(v[0-9]+\.[0-9]+\.[0-9]+|` + patternLatest + `))`),
	Allowed: "al2023@v and a date (YYYYMMDD), bottlerocket@v and a release (1.44.0), or of either @latest, or @latest-7d (the newest that " +
		"has been out for 1 to 90 days); one for each family, with a comma",
	Example: "al2023@v20260828,bottlerocket@v1.44.0",
}

// patternLatest matches the newest AMI, or the newest that has been out for some days.
const patternLatest = `latest(-([1-9]|[1-8][0-9]|90)d)?`

// aliases reads aliases by their families.
func aliases(value string) (map[string]string, error) {
	made := map[string]string{}
	for alias := range strings.SplitSeq(value, ",") {
		family, version, _ := strings.Cut(alias, "@")
		if date, dated := strings.CutPrefix(version, "v"); family == "al2023" && dated {
			if _, err := time.Parse("20060102", date); err != nil {
				return nil, fmt.Errorf("in which %s is no day of the calendar, which EKS dates its AMIs by", date)
			}
		}
		if first := made[family]; first != "" && first != alias {
			return nil, fmt.Errorf("which has two aliases of %s, %s and %s: all pools of a family run one", family, first, alias)
		}
		made[family] = alias
	}
	return made, nil
}
