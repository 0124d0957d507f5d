package nodes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	clock "k8s.io/utils/clock/testing"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// span is one time of a window: days of the week, and minutes of the day.
type span struct {
	first, last time.Weekday
	from, to    int
}

func (s span) String() string {
	days := s.first.String()[:3]
	if s.last != s.first {
		days += "-" + s.last.String()[:3]
	}
	return strings.ToUpper(fmt.Sprintf("%s %02d:%02d-%02d:%02d", days, s.from/60, s.from%60, s.to/60, s.to%60))
}

// open reports whether a moment is in the span, by the calendar alone: today's, or what is left of yesterday's.
func (s span) open(at time.Time) bool {
	for _, ago := range []int{0, 1} {
		day := at.AddDate(0, 0, -ago)
		midnight := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC)
		if distance := (day.Weekday() - s.first + 7) % 7; distance > (s.last-s.first+7)%7 {
			continue
		}
		from, to := midnight.Add(time.Duration(s.from)*time.Minute), midnight.Add(time.Duration(s.to)*time.Minute)
		if s.to < s.from {
			to = to.AddDate(0, 0, 1)
		}
		if !at.Before(from) && at.Before(to) {
			return true
		}
	}
	return false
}

// allowed returns how many of 100 nodes Karpenter itself lets go for a reason.
func allowed(t *testing.T, pool *karpenter.NodePool, at time.Time, reason karpenter.DisruptionReason) int {
	t.Helper()
	n, err := pool.GetAllowedDisruptionsByReason(clock.NewFakeClock(at), 100, reason)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func nodePool(t *testing.T, object plan.Object) *karpenter.NodePool {
	t.Helper()
	var pool karpenter.NodePool
	if err := json.Unmarshal(canonical.JSON(object), &pool); err != nil {
		t.Fatal(err)
	}
	return &pool
}

// Every minute of two weeks: Karpenter replaces nodes in the window, and none outside it.
func TestWindowsAreWhatKarpenterComputes(t *testing.T) {
	const hour, day = 60, 24 * 60
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	windows := []struct {
		spans []span
		// budgets is the least number that is enough, 0 if that is not known.
		budgets int
	}{
		{[]span{{time.Saturday, time.Saturday, 9 * hour, 13 * hour}}, 1},
		{[]span{{time.Monday, time.Friday, 22 * hour, 4 * hour}}, 2},
		{[]span{{time.Saturday, time.Saturday, 9 * hour, 13 * hour}, {time.Sunday, time.Sunday, 9 * hour, 13 * hour}}, 2},
		{[]span{{time.Monday, time.Sunday, 2 * hour, 3 * hour}, {time.Monday, time.Sunday, 14 * hour, 15 * hour}}, 1},
		{[]span{{time.Monday, time.Sunday, 0, day - 1}}, 1},
		{[]span{{time.Sunday, time.Sunday, 0, day}}, 1},
		{[]span{{time.Saturday, time.Saturday, 23 * hour, 30}}, 1},
		{[]span{{time.Friday, time.Monday, 20 * hour, 0}}, 2},
		{[]span{{time.Monday, time.Friday, 9 * hour, 17 * hour}, {time.Wednesday, time.Thursday, 12 * hour, 8 * hour}}, 3},
	}
	for range 12 {
		var spans []span
		for range 1 + random.IntN(4) {
			s := span{time.Weekday(random.IntN(7)), time.Weekday(random.IntN(7)), random.IntN(day), random.IntN(day)}
			if s.from != s.to {
				spans = append(spans, s)
			}
		}
		if spans != nil {
			windows = append(windows, struct {
				spans   []span
				budgets int
			}{spans, 0})
		}
	}
	for _, w := range windows {
		var texts []string
		for _, s := range w.spans {
			texts = append(texts, s.String())
		}
		text := strings.Join(texts, ",")
		pool := nodePool(t, rendered(t, plan.Facts{}, map[string]string{params.ParamWindow: text})["NodePool/workload"])
		budgets := len(pool.Spec.Disruption.Budgets) - 1
		if w.budgets != 0 && budgets != w.budgets {
			t.Errorf("%s: %d budgets, want %d: %+v", text, budgets, w.budgets, pool.Spec.Disruption.Budgets)
		}
		start := time.Date(2026, 2, 25, 0, 0, 0, 0, time.UTC)
		for at := start; at.Before(start.AddDate(0, 0, 14)); at = at.Add(time.Minute) {
			want := 0
			if slices.ContainsFunc(w.spans, func(s span) bool { return s.open(at) }) {
				want = 10
			}
			moment := at.Add(time.Duration(random.IntN(60)) * time.Second)
			if got := allowed(t, pool, moment, karpenter.DisruptionReasonDrifted); got != want {
				t.Fatalf("seed %d, %s: at %s %s Karpenter lets %d nodes go, want %d: %+v", seed, text, moment.Weekday(), moment, got, want,
					pool.Spec.Disruption.Budgets)
			}
		}
	}
}

// A blocked time is for every pool and two reasons, beside the budgets that there are, and no node is replaced for it.
func TestEveryPoolIsBlocked(t *testing.T) {
	texts := map[string]string{
		"build_node_enabled":                    "true",
		"karpenter_config":                      `{"nodePool":{"disruption":{"budgets":[{"nodes":"3"},{"nodes":"1","reasons":["Empty"]}]}}}`,
		"additional_karpenter_nodepools_config": `[{"name":"gpu","disruption_budget_nodes":"2"}]`,
	}
	free := rendered(t, plan.Facts{}, texts)
	texts[params.ParamBlockSchedule], texts[params.ParamBlockDuration] = "0 8 * * MON-FRI", "9h30m"
	blocked := rendered(t, plan.Facts{}, texts)
	block := object{"nodes": "0", "reasons": []any{"Drifted", "Underutilized"}, "schedule": "0 8 * * MON-FRI", "duration": "9h30m"}
	places(t, blocked, map[string]any{
		"NodePool/workload spec.disruption.budgets": []any{object{"nodes": "3"}, object{"nodes": "1", "reasons": []any{"Empty"}}, block},
		"NodePool/build spec.disruption.budgets":    []any{object{"nodes": "10%"}, block},
		"NodePool/gpu spec.disruption.budgets":      []any{object{"nodes": "2"}, block},
	})
	wednesday := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	for pool, most := range map[string]int{"workload": 3, "build": 10, "gpu": 2} {
		is, was := nodePool(t, blocked["NodePool/"+pool]), nodePool(t, free["NodePool/"+pool])
		if is.Hash() != was.Hash() {
			t.Errorf("%s: the hash is another, so that Karpenter replaces every node", pool)
		}
		for _, c := range []struct {
			at     time.Duration
			reason karpenter.DisruptionReason
			want   int
		}{
			{8*time.Hour - time.Second, karpenter.DisruptionReasonDrifted, most}, {8 * time.Hour, karpenter.DisruptionReasonDrifted, 0},
			{12 * time.Hour, karpenter.DisruptionReasonUnderutilized, 0},
			{17*time.Hour + 30*time.Minute - time.Second, karpenter.DisruptionReasonDrifted, 0},
			{17*time.Hour + 30*time.Minute, karpenter.DisruptionReasonDrifted, most},
			{12 * time.Hour, karpenter.DisruptionReasonEmpty, map[string]int{"workload": 1, "build": 10, "gpu": 2}[pool]},
		} {
			if got := allowed(t, is, wednesday.Add(c.at), c.reason); got != c.want {
				t.Errorf("%s: at %s Karpenter lets %d %s nodes go, want %d", pool, c.at, got, c.reason, c.want)
			}
		}
	}
}

// What a pass makes of the same parameters twice is the same, and the config's own list is left alone.
func TestBlocksLeaveTheConfigAlone(t *testing.T) {
	parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
		"karpenter_auth_mode": "true", "karpenter_enabled": "true", params.ParamWindow: "SAT 09:00-13:00",
		"karpenter_config": `{"nodePool":{"disruption":{"budgets":[{"nodes":"3"}]}}}`,
	}})
	first, second := Compile(parsed.Config, plan.Facts{}).Objects(), Compile(parsed.Config, plan.Facts{}).Objects()
	if !reflect.DeepEqual(first, second) || len(inner(parsed.Config.Workload.Override.NodePool, "disruption")["budgets"].([]any)) != 1 {
		t.Errorf("%v %v %v", first, second, parsed.Config.Workload.Override)
	}
}

func TestTooManyBudgets(t *testing.T) {
	budgets := func(n int) string {
		return `{"nodePool":{"disruption":{"budgets":[` + strings.TrimSuffix(strings.Repeat(`{"nodes":"5"},`, n), ",") + `]}}}`
	}
	irregular := func(n int) string {
		var spans []string
		for i := range n {
			spans = append(spans, fmt.Sprintf("%s %02d:00-%02d:%02d", strings.ToUpper(time.Weekday(i % 7).String()[:3]), i/7, i/7, i+1))
		}
		return strings.Join(spans, ",")
	}
	for _, c := range []struct {
		config, window string
		want           []string
	}{
		{budgets(49), "SAT 09:00-13:00", nil},
		{budgets(50), "SAT 09:00-13:00", []string{"karpenter_config nodePool.disruption.budgets: nodePool.disruption.budgets has 50 budgets, " +
			"and karpenter_disruption_window adds 1; a NodePool holds at most 50; take out 1"}},
		{budgets(51), "SAT 09:00-13:00", []string{"karpenter_config nodePool.disruption.budgets: nodePool.disruption.budgets is refused by " +
			"Kubernetes for Karpenter's NodePool: must have at most 50 items; change it or leave it out"}},
		{"", irregular(49), nil},
		{"", irregular(50), []string{"karpenter_disruption_window : karpenter_disruption_window makes 50 disruption budgets, and a NodePool " +
			"holds at most 50 with its own; write fewer times, or times that are the same on several days"}},
	} {
		parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true", params.ParamWindow: c.window,
			"karpenter_config": c.config,
		}})
		var got []string
		for _, p := range slices.Compact(Compile(parsed.Config, plan.Facts{}).Check()) {
			got = append(got, p.Parameter+" "+p.Path+": "+p.Message)
		}
		if len(parsed.Problems) > 0 || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %.40s: %v %q, want %q", c.window, c.config, parsed.Problems, got, c.want)
		}
	}
}

// Expiry reads no budget: the warning counts the nodes that end in a blocked time.
func TestExpiryInABlockedTime(t *testing.T) {
	claim := func(pool, created string) plan.Object {
		return plan.Object{
			"metadata": object{"creationTimestamp": created, "labels": object{"karpenter.sh/nodepool": pool}},
			"spec":     object{"expireAfter": "24h"}, "status": object{"conditions": []any{object{"type": "Launched", "status": "True"}}},
		}
	}
	claims := []plan.Object{
		claim("workload", "2026-03-05T10:00:00Z"), claim("workload", "2026-03-06T10:00:00Z"), claim("workload", "2026-03-03T10:00:00Z"),
		claim("other", "2026-03-03T10:00:00Z"), claim("workload", "2026-03-06T14:00:00Z"),
	}
	const begin, end = "Karpenter's expiry reads no budgets: nodes of workload expire in the blocked times too",
		"; where that must not be, write a longer expiry, or Never"
	for _, c := range []struct {
		expiry string
		claims []plan.Object
		want   string
	}{
		{"720h", nil, begin + end},
		{"720h", claims, begin + " (3 of the 4 that there are now: 2 in the next such time, the first at 2026-03-04T10:00:00Z)" + end},
		{"720h", claims[1:2], begin + " (none of those that there are now)" + end},
		{"Never", claims, ""},
	} {
		parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "true", params.ParamWindow: "SAT 09:00-13:00", "karpenter_node_expiry": c.expiry,
		}})
		got := ""
		for _, p := range Compile(parsed.Config, plan.Facts{}).Blocked(c.claims) {
			got += p.Message
		}
		if got != c.want {
			t.Errorf("%s, %d NodeClaims: %q, want %q", c.expiry, len(c.claims), got, c.want)
		}
	}
}
