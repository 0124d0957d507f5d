package params

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The gap decides which duration would block for ever.
func TestTheSmallestGap(t *testing.T) {
	for schedule, want := range map[string]string{
		"@yearly": "8760h", "@annually": "8760h", "@monthly": "672h", "@weekly": "168h", "@daily": "24h", "@midnight": "24h", "@hourly": "1h",
		"* * * * *": "1m", "*/7 * * * *": "4m", "0 9 * * *": "24h", "0 9,17 * * *": "8h", "30 23,0 * * *": "1h", "0 9 * * MON-FRI": "24h",
		"0 9 * * MON,WED": "48h", "0 9 * * MON": "168h", "0 9 31 * *": "744h", "0 0 29 2 *": "35064h", "0 0 31 2 1": "168h",
		"0 0 1 * 1": "24h", "0 22 1 1 *": "8760h", "0 0 28 2 *": "8760h", "0 0,23 1 1 *": "23h", "0 0 */10 * *": "24h", "59 23,0 1,2 * *": "1h",
	} {
		parsed, err := parseCron(schedule)
		if err != nil {
			t.Fatal(schedule, err)
		}
		if got := hoursAndMinutes(smallestGap(parsed)); got != want {
			t.Errorf("%s: %s, want %s", schedule, got, want)
		}
	}
}

// No two firings are nearer to each other than the gap, and some are that near.
func TestTheSmallestGapIsThatOfTheFirings(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	field := func(least, most int) string {
		switch random.IntN(4) {
		case 0:
			return "*"
		case 1:
			return fmt.Sprintf("%d,%d", least+random.IntN(most-least+1), least+random.IntN(most-least+1))
		}
		return fmt.Sprint(least + random.IntN(most-least+1))
	}
	for range 200 {
		text := fmt.Sprintf("%d,%d %s %s * %s", random.IntN(60), random.IntN(60), field(0, 23), field(1, 28), field(0, 6))
		schedule, err := parseCron(text)
		if err != nil {
			t.Fatal(text, err)
		}
		nearest := 10 * 8760 * time.Hour
		last := schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		for last.Year() < 2028 || nearest == 10*8760*time.Hour {
			next := schedule.Next(last)
			nearest, last = min(nearest, next.Sub(last)), next
		}
		// A gap between months may be smaller in other years.
		if gap := smallestGap(schedule); gap > nearest || gap < nearest-72*time.Hour || nearest <= 24*time.Hour && gap != nearest {
			t.Errorf("seed %d: %s: %s, want %s", seed, text, gap, nearest)
		}
	}
}

func TestBlocksTogether(t *testing.T) {
	for _, c := range []struct {
		schedule, duration, window string
		want                       []string
	}{
		{"0 8 * * *", "23h59m", "", nil},
		{"0 8 * * *", "24h", "", []string{`karpenter_disruption_block_duration: karpenter_disruption_block_duration is "24h", but ` +
			`karpenter_disruption_block_schedule "0 8 * * *" fires again after 24h, and Karpenter might never replace a node; allowed is what is ` +
			`shorter than the smallest gap between two firings; write less than 24h`}},
		{"0 9,17 * * *", "9h", "", []string{`karpenter_disruption_block_duration: karpenter_disruption_block_duration is "9h", but ` +
			`karpenter_disruption_block_schedule "0 9,17 * * *" fires again after 8h, and Karpenter might never replace a node; allowed is what ` +
			`is shorter than the smallest gap between two firings; write less than 8h`}},
		{"* * * * *", "1m", "", []string{`karpenter_disruption_block_duration: karpenter_disruption_block_duration is "1m", but ` +
			`karpenter_disruption_block_schedule "* * * * *" fires again after 1m, and Karpenter might never replace a node; allowed is what is ` +
			`shorter than the smallest gap between two firings; write a schedule that fires less often`}},
		{"@monthly", "672h", "", []string{"karpenter_disruption_block_duration: write less than 672h"}},
		{"0 8 * * *", "", "", []string{`karpenter_disruption_block_schedule: karpenter_disruption_block_schedule is "0 8 * * *", but ` +
			`karpenter_disruption_block_duration is not set; both are allowed or neither; write, for example, ` +
			`karpenter_disruption_block_duration=8h30m`}},
		{"", "8h", "", []string{`karpenter_disruption_block_duration: karpenter_disruption_block_duration is "8h", but ` +
			`karpenter_disruption_block_schedule is not set; both are allowed or neither; write, for example, ` +
			`karpenter_disruption_block_schedule=0 8 * * MON-FRI`}},
		{"0 8 * * *", "8h", "SAT 09:00-13:00", []string{`karpenter_disruption_window: karpenter_disruption_window is "SAT 09:00-13:00", but ` +
			`karpenter_disruption_block_schedule is set too; one of them says when nodes are replaced: karpenter_disruption_window when they may ` +
			`be, the others when they may not; unset one`}},
		{"", "8h", "SAT 09:00-13:00", []string{"karpenter_disruption_window: but karpenter_disruption_block_duration is set too"}},
		{"0 25 * * *", "8h", "", []string{
			"karpenter_disruption_block_schedule: which Karpenter cannot read (end of range (25) above maximum (23): 25)",
		}},
		{"0 8 30 2 *", "8h", "", []string{
			"karpenter_disruption_block_schedule: which is a time that never comes, and Karpenter takes that for always",
		}},
		{"0 8 * * *", "0h", "", []string{"karpenter_disruption_block_duration: which would block nothing"}},
		{"0 25 * * *", "0h", "", []string{"karpenter_disruption_block_duration: nothing", "karpenter_disruption_block_schedule: cannot read"}},
		{"", "", "SAT 09:00-09:00", []string{`karpenter_disruption_window: karpenter_disruption_window is "SAT 09:00-09:00", in which SAT ` +
			`09:00-09:00 begins and ends at the same time; allowed is days`}},
	} {
		r := Parse(Input{Rack: "demo", Params: map[string]string{
			ParamBlockSchedule: c.schedule, ParamBlockDuration: c.duration, ParamWindow: c.window,
		}})
		same(t, fmt.Sprint(c), r.Problems, c.want)
		if blocks, _ := r.Config.Blocks(); (len(blocks) > 0) != (c.want == nil) {
			t.Errorf("%v: blocks %v", c, blocks)
		}
	}
}

// The rest of the week is in as few blocks as there can be.
func TestBlocks(t *testing.T) {
	for window, want := range map[string]string{
		"SAT 09:00-13:00":                                 "0 13 * * 6 164h",
		"MON-FRI 22:00-04:00":                             "0 4 * * 2-5 18h|0 4 * * 6 66h",
		"MON-SUN 02:00-03:00,MON-SUN 14:15-15:15":         "0 3 * * * 11h15m|15 15 * * * 10h45m",
		"MON-SUN 02:00-03:00,MON-SUN 14:00-15:00":         "0 3,15 * * * 11h",
		"SUN 00:00-24:00":                                 "0 0 * * 1 144h",
		"MON-SUN 00:01-00:00":                             "0 0 * * * 1m",
		"MON-FRI 09:00-17:00,FRI-SUN 17:00-17:01":         "0 17 * * 1-4 16h|1 17 * * 5-6 23h59m|1 17 * * 0 15h59m",
		"MON-SUN 00:00-24:00":                             "",
		"SAT 09:00-13:00,SAT 10:00-11:00,SAT 09:00-13:00": "0 13 * * 6 164h",
	} {
		var got []string
		for _, b := range first(Config{Window: window}.Blocks()) {
			got = append(got, b.Schedule+" "+b.Duration)
		}
		wanted := strings.Split(want, "|")
		slices.Sort(got)
		slices.Sort(wanted)
		if strings.Join(got, "|") != strings.Join(wanted, "|") {
			t.Errorf("%s: %q, want %q", window, got, want)
		}
	}
}

func TestWindowAdvice(t *testing.T) {
	for window, want := range map[string][]string{
		"SAT 09:00-10:00": nil,
		"SAT 09:00-09:30,SUN 09:00-09:29": {`karpenter_disruption_window: ` +
			`karpenter_disruption_window is "SAT 09:00-09:30,SUN 09:00-09:29", which ` +
			`leaves 59 minutes a week: Karpenter may not get around to replacing the nodes; write a longer time`},
		"MON-SUN 00:00-24:00": {`karpenter_disruption_window: karpenter_disruption_window is "MON-SUN 00:00-24:00", which is the whole week: ` +
			`nothing is blocked; unset it`},
	} {
		same(t, window, Parse(Input{Rack: "demo", Params: map[string]string{ParamWindow: window}}).Warnings, want)
	}
}

func first(blocks []Block, _ string) []Block { return blocks }

// A block ends when the last firing in it has lasted as long as it says, and another moment is in none.
func TestBlockEnds(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for _, c := range []struct{ schedule, duration, at, want string }{
		{"0 8 * * *", "8h", "2026-01-02T08:00:00Z", "2026-01-02T16:00:00Z"},
		{"0 8 * * *", "8h", "2026-01-02T16:59:00+01:00", "2026-01-02T16:00:00Z"},
		{"0 8 * * *", "8h", "2026-01-02T17:00:00Z", "2026-01-02T17:00:00Z"},
		{"0 8,12 * * *", "8h", "2026-01-02T13:00:00Z", "2026-01-02T20:00:00Z"},
		{"0 22 * * 5", "30h", "2026-01-03T10:00:00Z", "2026-01-04T04:00:00Z"},
	} {
		if got := (Block{c.schedule, c.duration}).Ends(at(c.at)); !got.Equal(at(c.want)) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
