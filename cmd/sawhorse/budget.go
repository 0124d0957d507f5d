package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// budget is a disruption budget of a NodePool.
type budget struct {
	Nodes    string   `json:"nodes"`
	Reasons  []string `json:"reasons"`
	Schedule string   `json:"schedule"`
	Duration string   `json:"duration"`
}

func (b budget) String() string {
	text := "nodes: " + b.Nodes
	if b.Schedule != "" {
		text += fmt.Sprintf(", from %s (UTC) for %s", b.Schedule, b.Duration)
	}
	if len(b.Reasons) > 0 {
		text += ", for " + strings.Join(b.Reasons, " and ")
	}
	return text
}

// active reports whether the budget is in force, as Karpenter finds it out (pkg/apis/v1, Budget.IsActive).
func (b budget) active(now time.Time) bool {
	if b.Schedule == "" {
		return true
	}
	schedule, err := cron.ParseStandard("TZ=UTC " + b.Schedule)
	length, lengthErr := time.ParseDuration(b.Duration)
	return err == nil && lengthErr == nil && !schedule.Next(now.UTC().Add(-length)).After(now.UTC())
}

// covers reports whether the budget is for a reason.
func (b budget) covers(why string) bool {
	return len(b.Reasons) == 0 || slices.Contains(b.Reasons, why)
}

// allows returns how many of a pool's nodes may go at once. A percentage is rounded up, as Karpenter does.
func (b budget) allows(nodes int) int {
	value := intstr.Parse(b.Nodes)
	n, err := intstr.GetScaledValueFromIntOrPercent(&value, nodes, true)
	if err != nil {
		return 0
	}
	return n
}
