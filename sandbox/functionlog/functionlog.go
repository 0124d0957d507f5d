// Package functionlog reads the logs of the functions.
package functionlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// Line is a line of a function's log.
type Line struct{ Function, Text string }

// Call is one call of a function, as Lambda's report tells of it.
type Call struct {
	Function string
	Took     time.Duration
	// Memory is in MB.
	Memory float64
}

// prefix is that of the functions' log groups.
const prefix = "/aws/lambda/Sawhorse-"

// script prints the lines of each log group that begins with a text since a time, in JSON.
const script = `
groups=$(aws logs describe-log-groups --log-group-name-prefix %s --query 'logGroups[].logGroupName' --output text)
for group in $groups; do
  aws logs filter-log-events --log-group-name "$group" --start-time %d --query "{group: '$group', lines: events[].message}" --output json
done`

// Since returns the lines since a time. function is a function's name; "" means all.
func Since(ctx context.Context, environment user.Environment, function string, since time.Time) ([]Line, error) {
	text, err := environment.Run(ctx, fmt.Sprintf(script, prefix+function, since.UnixMilli()))
	if err != nil {
		return nil, err
	}
	return decode(text)
}

func decode(text string) ([]Line, error) {
	var all []Line
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var of struct {
			Group string
			Lines []string
		}
		if err := decoder.Decode(&of); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("logs: decode: %w", err)
		}
		for _, line := range of.Lines {
			all = append(all, Line{strings.TrimPrefix(of.Group, prefix), line})
		}
	}
}

var report = regexp.MustCompile(`^REPORT .*\tDuration: ([0-9.]+) ms\t.*Memory Size: ([0-9]+) MB`)

// Call returns the call that a line reports. Other lines report none.
func (l Line) Call() (Call, bool) {
	m := report.FindStringSubmatch(l.Text)
	if m == nil {
		return Call{}, false
	}
	milliseconds, _ := strconv.ParseFloat(m[1], 64) // the pattern matches digits only
	memory, _ := strconv.ParseFloat(m[2], 64)
	return Call{l.Function, time.Duration(milliseconds * float64(time.Millisecond)), memory}, true
}
