// Package timeline tells what happened when, in the cluster and in AWS, and which promises about the order of things were broken.
package timeline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Moment is something that happened. What is a line: of a watch "ADDED NodePool workload Ready=True", of AWS
// "AWS Sawhorse-Queue-Role sqs CreateQueue /".
type Moment struct {
	At   time.Time
	What string
}

// Trail reads the gateway's /_sandbox/trail.
func Trail(text string) ([]Moment, error) {
	var found []Moment
	for line := range strings.Lines(text) {
		at, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		parsed, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return nil, fmt.Errorf("trail: line %q: %w", line, err)
		}
		found = append(found, Moment{parsed, "AWS " + what})
	}
	return found, nil
}

// Sort puts moments in order.
func Sort(all []Moment) {
	slices.SortStableFunc(all, func(a, b Moment) int { return a.At.Compare(b.At) })
}

// Like matches lines with a regular expression.
func Like(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

// First is when something was first seen from a moment on; the zero time if never.
func First(all []Moment, from time.Time, is func(string) bool) time.Time {
	for _, m := range all {
		if !m.At.Before(from) && is(m.What) {
			return m.At
		}
	}
	return time.Time{}
}

// Last is when something was last seen; the zero time if never.
func Last(all []Moment, is func(string) bool) time.Time {
	for _, m := range slices.Backward(all) {
		if is(m.What) {
			return m.At
		}
	}
	return time.Time{}
}

// Clock is a time of day, "never" for the zero time.
func Clock(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Local().Format("15:04:05.000")
}
