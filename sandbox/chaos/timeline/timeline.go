// Package timeline records what happened when in the cluster and in AWS, and finds the ordering
// promises that were broken.
package timeline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Moment is something that happened. What is a line, such as "ADDED NodePool workload Ready=True" from a watch, or "AWS
// Sawhorse-Queue-Role sqs CreateQueue /" from AWS.
type Moment struct {
	At   time.Time
	What string
}

// Trail parses the text of the gateway's /_sandbox/trail.
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

// Sort sorts moments by time.
func Sort(all []Moment) {
	slices.SortStableFunc(all, func(a, b Moment) int { return a.At.Compare(b.At) })
}

// Like returns a function that matches lines with a regular expression.
func Like(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

// First returns when something was first seen at or after a time; the zero time if never.
func First(all []Moment, from time.Time, is func(string) bool) time.Time {
	for _, m := range all {
		if !m.At.Before(from) && is(m.What) {
			return m.At
		}
	}
	return time.Time{}
}

// Last returns when something was last seen; the zero time if never.
func Last(all []Moment, is func(string) bool) time.Time {
	for _, m := range slices.Backward(all) {
		if is(m.What) {
			return m.At
		}
	}
	return time.Time{}
}

// Clock formats a time of day, "never" for the zero time.
func Clock(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Local().Format("15:04:05.000")
}
