// Package rates has AWS's default request rates as token buckets: while they are on, a call that finds its bucket empty is refused
// as the service refuses it, and what each bucket has given is counted.
package rates

// Quota is how many calls of some actions a service takes from one account and region.
type Quota struct {
	// Service is AWS's signing name, "ssm". Actions share the bucket; no actions are all those of the service that no other quota
	// names. Each gives every action a bucket of its own.
	Service string
	Actions []string
	Each    bool
	// Burst is how many calls the full bucket gives at once, PerSecond how many come back each second.
	Burst, PerSecond float64
	// Source is where AWS publishes it; empty for what AWS does not publish, which is an assumption then.
	Source string
}

const (
	ssmQuotas    = "AWS General Reference, Systems Manager endpoints and quotas"
	statesQuotas = "Step Functions Developer Guide, Quotas related to API action throttling (US East, N. Virginia)"
	eventsQuotas = "EventBridge User Guide, Quotas (US East, N. Virginia)"
	ec2Quotas    = "EC2 Developer Guide, Request throttling for the Amazon EC2 API"
	tableQuotas  = "DynamoDB Developer Guide, Initial throughput for on-demand capacity mode"
)

// Quotas are the defaults. EKS and IAM publish no rates and refuse all the same: theirs are low assumptions.
var Quotas = []Quota{
	{Service: "ssm", Actions: []string{"GetParameter", "GetParameters", "GetParametersByPath"}, Burst: 40, PerSecond: 40, Source: ssmQuotas},
	{Service: "ssm", Actions: []string{"PutParameter"}, Burst: 3, PerSecond: 3, Source: ssmQuotas},
	{Service: "ssm", Actions: []string{"DescribeParameters"}, Burst: 3, PerSecond: 3},
	{Service: "states", Actions: []string{"StartExecution"}, Burst: 1300, PerSecond: 300, Source: statesQuotas},
	{Service: "states", Actions: []string{"GetExecutionHistory"}, Burst: 400, PerSecond: 20, Source: statesQuotas},
	{Service: "events", Actions: []string{"PutEvents"}, Burst: 10_000, PerSecond: 10_000, Source: eventsQuotas},
	{Service: "events", Each: true, Burst: 50, PerSecond: 50, Source: eventsQuotas},
	{Service: "ec2", Actions: []string{"CreateTags", "DeleteTags"}, Each: true, Burst: 100, PerSecond: 10, Source: ec2Quotas},
	{Service: "ec2", Each: true, Burst: 100, PerSecond: 20, Source: ec2Quotas}, // Describe*, filtered or paged
	{Service: "dynamodb", Actions: []string{"PutItem", "UpdateItem", "DeleteItem"}, Burst: 4_000, PerSecond: 4_000, Source: tableQuotas},
	{Service: "dynamodb", Actions: []string{"GetItem", "Query", "Scan"}, Burst: 12_000, PerSecond: 12_000, Source: tableQuotas},
	{Service: "eks", Each: true, Burst: 20, PerSecond: 10},
	{Service: "iam", Each: true, Burst: 20, PerSecond: 10},
}

// Quotas of what the state machine does itself, past the gateway: they are held against its histories.
const (
	// Transitions is how many states all executions may enter in a second.
	Transitions = 5_000
	// Concurrency is how many functions may run at once in an account.
	Concurrency = 1_000
)
