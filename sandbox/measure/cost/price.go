package cost

import "time"

// Item is something that AWS charges for.
type Item int

// The items.
const (
	Transition Item = iota
	Request
	GBSecond
	Write
	Read
	Event
	LogGB
	Trace
	Metric
	QueueAlarm
	QueueRequest
)

// Price is the price of one item.
type Price struct {
	Item Item
	What string
	// Dollars is the list price of one in US East (N. Virginia), without the free tier.
	Dollars float64
}

// Prices has all prices.
var Prices = []Price{
	{Transition, "Step Functions, Standard: a state transition", 0.025 / 1000},
	{Request, "Lambda: a request", 0.20 / 1e6},
	{GBSecond, "Lambda, arm64: a GB-second", 0.0000133334},
	{Write, "DynamoDB, on demand: a write", 0.625 / 1e6},
	{Read, "DynamoDB, on demand: a read", 0.125 / 1e6},
	{Event, "EventBridge: a custom event", 1.00 / 1e6},
	{LogGB, "CloudWatch Logs: a GB", 0.50},
	{Trace, "X-Ray: a trace", 5.00 / 1e6},
	{Metric, "CloudWatch: a metric, for an hour in which it has data", 0.30 / 730},
	{QueueAlarm, "CloudWatch: an alarm on one metric, for a month", 0.10},
	{QueueRequest, "SQS: a request", 0.40 / 1e6},
}

// Counts are numbers of items.
type Counts map[Item]float64

// Dollars returns the price of what was counted.
func (c Counts) Dollars() (sum float64) {
	for _, p := range Prices {
		sum += c[p.Item] * p.Dollars
	}
	return sum
}

// Every call of a function of a rack that is seldom changed begins with a cold start, which takes longer on AWS than here.
// These are assumptions. A call that takes longer here counts as it is.
const (
	coldAudit = 2 * time.Second
	coldCall  = time.Second
	// warmLook is for a node check, in a function that is called every five minutes. One call looks at all racks,
	// three at a time; here a rack pays for all of its time.
	warmLook = 500 * time.Millisecond
)

// A month of one rack.
const (
	hours   = 730
	changes = 100
	looks   = hours * 12
	// polls is how often Karpenter asks its interruption queue, every 20 s.
	polls = hours * 3600 / 20
	// most is what a rack may cost in a month, in dollars, beyond the polling of its queue.
	most = 0.25
)

// line is one line of a month's bill.
type line struct {
	what    string
	dollars float64
}

// month returns the bill of a rack that is audited every hour and changed a hundred times, each time in another hour.
func month(audit, change, look Pass) []line {
	price := func(item Item, n float64) float64 { return Counts{item: n}.Dollars() }
	return []line{
		{"730 audits", hours * audit.cold().Dollars()},
		{"100 changes of a parameter", changes * change.cold().Dollars()},
		{"8,760 node checks", looks * look.warm().Dollars()},
		{"traces of the audits and the changes", price(Trace, hours+changes)},
		{"the metric OutOfLine, in 100 hours", price(Metric, changes)},
		{"the alarm on unread queues, for its queue", price(QueueAlarm, 1)},
	}
}
