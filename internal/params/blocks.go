package params

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Block is a time that comes again and again, in which Karpenter replaces no node of its own accord.
type Block struct {
	// Schedule is a cron expression in UTC, and Duration is in hours and minutes, as NodePools' budgets have them.
	Schedule, Duration string
}

// Covers reports whether a moment is in the block, as Karpenter computes it: Budget.IsActive.
func (b Block) Covers(at time.Time) bool {
	schedule, err := parseCron(b.Schedule)
	duration, wrong := time.ParseDuration(b.Duration)
	return err == nil && wrong == nil && !schedule.Next(at.UTC().Add(-duration)).After(at)
}

// Ends returns when the block ends that covers a moment. A firing within the block makes it longer.
func (b Block) Ends(at time.Time) time.Time {
	schedule, err := parseCron(b.Schedule)
	duration, wrong := time.ParseDuration(b.Duration)
	end := at.UTC()
	if err != nil || wrong != nil {
		return end
	}
	for fires := schedule.Next(end.Add(-duration)); !fires.After(at); fires = schedule.Next(fires) {
		end = fires.Add(duration)
	}
	return end
}

// Blocks returns the times in which Karpenter replaces no node of any pool, and the parameter that says so.
func (c Config) Blocks() (blocks []Block, parameter string) {
	switch {
	case c.Window != "":
		week, _ := parseWindow(c.Window) // which has been read before
		return week.blocked(), ParamWindow
	case c.BlockSchedule != "":
		return []Block{{c.BlockSchedule, c.BlockDuration}}, ParamBlockSchedule
	}
	return nil, ""
}

// Values of the parameters that block disruption.
var (
	scheduleValue = Value{
		Type: "schedule", Pattern: `@(annually|yearly|monthly|weekly|daily|midnight|hourly)|` + cronField + `( ` + cronField + `){4}`,
		Allowed: "five fields of cron in UTC (minute, hour, day of the month, month, and day of the week from 0 or SUN to 6 or SAT), " +
			"or @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually",
		Example: "0 8 * * MON-FRI",
	}
	blockValue = Value{
		Type: "duration", Pattern: `[0-9]+h|[0-9]+m|[0-9]+h[0-9]+m`, Allowed: "hours and minutes, shorter than the schedule's smallest gap",
		Example: "8h30m",
	}
	windowValue = Value{
		Type: "schedule", Pattern: commas(weekday + `(-` + weekday + `)? ` + timeOfDay + `-(` + timeOfDay + `|24:00)`),
		Allowed: "days (MON to SUN, or a range of them) and times of the day in UTC (00:00 to 23:59, or 24:00 as the end), with commas",
		Example: "SAT 09:00-13:00,MON-FRI 22:00-04:00",
	}
)

const (
	cronField = `[0-9A-Za-z*?/,+-]+`
	weekday   = `(MON|TUE|WED|THU|FRI|SAT|SUN)`
	timeOfDay = `([01][0-9]|2[0-3]):[0-5][0-9]`
)

// parseCron reads a schedule as Karpenter does. If Karpenter cannot, it never disrupts a node again, and only its log says so.
func parseCron(text string) (*cron.SpecSchedule, error) {
	parsed, err := cron.ParseStandard("TZ=UTC " + text)
	schedule, fixed := parsed.(*cron.SpecSchedule)
	switch {
	case err != nil:
		return nil, fmt.Errorf("which Karpenter cannot read (%w)", err)
	case !fixed:
		return nil, errors.New("which is no cron")
	case schedule.Next(time.Unix(0, 0)).IsZero():
		return nil, errors.New("which is a time that never comes, and Karpenter takes that for always")
	}
	return schedule, nil
}

func blockSchedule(value string) (string, error) {
	_, err := parseCron(value)
	return value, err
}

// smallestGap returns the shortest time between two moments at which a schedule fires.
func smallestGap(schedule *cron.SpecSchedule) time.Duration {
	var times []time.Duration // of a day: they are the same on each day on which it fires
	for minute := range 24 * 60 {
		if schedule.Hour&(1<<(minute/60)) != 0 && schedule.Minute&(1<<(minute%60)) != 0 {
			times = append(times, time.Duration(minute)*time.Minute)
		}
	}
	days := *schedule
	days.Hour, days.Minute = 1, 1 // midnight
	const day = 24 * time.Hour
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	gap := 28 * 366 * day
	// After 28 years the days of the week are the same dates again.
	for last, end := days.Next(start), start.AddDate(33, 0, 0); last.Before(end) && gap > day; {
		next := days.Next(last)
		gap, last = min(gap, next.Sub(last)), next
	}
	gap -= times[len(times)-1] - times[0]
	for i := range times[1:] {
		gap = min(gap, times[i+1]-times[i])
	}
	return gap
}

// hoursAndMinutes formats a duration as the CRD of NodePools wants it.
func hoursAndMinutes(d time.Duration) string {
	hours, minutes := int(d/time.Hour), int(d%time.Hour/time.Minute)
	switch {
	case minutes == 0:
		return fmt.Sprintf("%dh", hours)
	case hours == 0:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%dh%dm", hours, minutes)
}

// blocks checks what the parameters that block disruption say together. Those that cannot be used are left out of the Config.
func (r *Result) blocks() {
	_, schedule := r.written[ParamBlockSchedule]
	_, duration := r.written[ParamBlockDuration]
	_, window := r.written[ParamWindow]
	config := &r.Config
	switch {
	case window && (schedule || duration):
		r.problem(ParamWindow, "", "%s is %s, but %s is set too; one of them says when nodes are replaced: %s when they may be, the others "+
			"when they may not; unset one", ParamWindow, Quoted(r.written[ParamWindow]), map[bool]string{true: ParamBlockSchedule,
			false: ParamBlockDuration}[schedule], ParamWindow)
		config.Window, config.BlockSchedule = "", ""
	case schedule && !duration:
		r.problem(ParamBlockSchedule, "", "%s is %s, but %s is not set; both are allowed or neither; write, for example, %s=%s",
			ParamBlockSchedule, Quoted(r.written[ParamBlockSchedule]), ParamBlockDuration, ParamBlockDuration, blockValue.Example)
		config.BlockSchedule = ""
	case duration && !schedule:
		r.problem(ParamBlockDuration, "", "%s is %s, but %s is not set; both are allowed or neither; write, for example, %s=%s",
			ParamBlockDuration, Quoted(r.written[ParamBlockDuration]), ParamBlockSchedule, ParamBlockSchedule, scheduleValue.Example)
	case config.BlockSchedule == "" || config.BlockDuration == "": // absent or refused
		config.BlockSchedule = ""
	default:
		r.blockGap()
	}
}

// blockGap refuses a duration after which the schedule has fired again already: Karpenter would never replace a node.
func (r *Result) blockGap() {
	schedule, _ := parseCron(r.Config.BlockSchedule) // both have been read before
	duration, _ := time.ParseDuration(r.Config.BlockDuration)
	if gap := smallestGap(schedule); duration >= gap {
		instead := "less than " + hoursAndMinutes(gap)
		if gap <= time.Minute {
			instead = "a schedule that fires less often"
		}
		r.problem(ParamBlockDuration, "", "%s is %s, but %s %s fires again after %s, and Karpenter might never replace a node; allowed is what "+
			"is shorter than the smallest gap between two firings; write %s", ParamBlockDuration, Quoted(r.Config.BlockDuration),
			ParamBlockSchedule, Quoted(r.Config.BlockSchedule), hoursAndMinutes(gap), instead)
		r.Config.BlockSchedule = ""
	}
}

// little is the least number of minutes in a week that Karpenter has for nodes without a warning.
const little = 60

// windowAdvice warns of a window in which next to nothing is possible, or everything.
func (r *Result) windowAdvice() {
	if r.Config.Window == "" {
		return
	}
	week, _ := parseWindow(r.Config.Window) // which has been read before
	open := 0
	for _, minute := range week {
		if minute {
			open++
		}
	}
	switch {
	case open == len(week):
		r.warning(ParamWindow, "", "%s is %s, which is the whole week: nothing is blocked; unset it", ParamWindow, Quoted(r.Config.Window))
	case open < little:
		r.warning(ParamWindow, "", "%s is %s, which leaves %d minutes a week: Karpenter may not get around to replacing the nodes; write a "+
			"longer "+
			"time", ParamWindow, Quoted(r.Config.Window), open)
	}
}

// week has for each minute of a week, from Sunday on, whether nodes may be replaced.
type week [7 * minutesOfDay]bool

const minutesOfDay = 24 * 60

// weekdays are the days in cron's order.
var weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// parseWindow reads the times at which nodes may be replaced.
func parseWindow(value string) (open week, err error) {
	for span := range strings.SplitSeq(value, ",") {
		days, times, _ := strings.Cut(span, " ")
		from, to, _ := strings.Cut(times, "-")
		begin, end := minuteOfDay(from), minuteOfDay(to)
		if begin == end {
			return open, fmt.Errorf("in which %s begins and ends at the same time", span)
		}
		if end < begin {
			end += minutesOfDay // it belongs to the day on which it begins
		}
		first, last, isRange := strings.Cut(days, "-")
		if !isRange {
			last = first
		}
		for day := slices.Index(weekdays, first); ; day = (day + 1) % len(weekdays) {
			for minute := begin; minute < end; minute++ {
				open[(day*minutesOfDay+minute)%len(open)] = true
			}
			if weekdays[day] == last {
				break
			}
		}
	}
	return open, nil
}

// minuteOfDay reads a time like 09:30, which matches the pattern.
func minuteOfDay(text string) int {
	digit := func(at int) int { return int(text[at] - '0') }
	return (digit(0)*10+digit(1))*60 + digit(3)*10 + digit(4)
}

func window(value string) (string, error) {
	_, err := parseWindow(value)
	return value, err
}

// blocked returns the blocks in which no minute is open, as few as there can be.
func (w week) blocked() (blocks []Block) {
	var all []firings
	for minute := range w {
		if !w[minute] && w[(minute+len(w)-1)%len(w)] {
			length := 1
			for !w[(minute+length)%len(w)] {
				length++
			}
			all = append(all, firings{length, [3]uint64{1 << (minute % 60), 1 << (minute / 60 % 24), 1 << (minute / minutesOfDay)}})
		}
	}
	for _, field := range []int{ofDays, ofHours, ofMinutes} {
		all = merged(all, field)
	}
	for _, f := range all {
		blocks = append(blocks, Block{f.schedule(), hoursAndMinutes(time.Duration(f.length) * time.Minute)})
	}
	return blocks
}

// firings are the moments at which blocks of one length, in minutes, begin: the sets of cron's fields.
type firings struct {
	length int
	fields [3]uint64
}

// The fields of firings.
const (
	ofMinutes = iota
	ofHours
	ofDays
)

// merged makes one of all firings that differ in one field only.
func merged(all []firings, field int) (fewer []firings) {
	for _, f := range all {
		same := slices.IndexFunc(fewer, func(known firings) bool {
			known.fields[field] = f.fields[field]
			return known == f
		})
		if same < 0 {
			fewer = append(fewer, f)
			continue
		}
		fewer[same].fields[field] |= f.fields[field]
	}
	return fewer
}

func (f firings) schedule() string {
	return fmt.Sprintf("%s %s * * %s", cronSet(f.fields[ofMinutes], 60), cronSet(f.fields[ofHours], 24), cronSet(f.fields[ofDays], 7))
}

// cronSet formats the set of the values of a field that has so many.
func cronSet(set uint64, size int) string {
	if bits.OnesCount64(set) == size {
		return "*"
	}
	var parts []string
	for first := 0; first < size; first++ {
		last := first
		for last < size && set&(1<<last) != 0 {
			last++
		}
		switch last - first {
		case 0:
			continue
		case 1:
			parts = append(parts, fmt.Sprint(first))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", first, last-1))
		}
		first = last
	}
	return strings.Join(parts, ",")
}
