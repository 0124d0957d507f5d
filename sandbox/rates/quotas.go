// Package rates implements AWS's default request rates as token buckets. While the limiter is on, a call that finds its
// bucket empty is rejected as the service would reject it. The use of each bucket is counted.
package rates

// Quota is the rate at which a service accepts some actions from one account and region.
type Quota struct {
	// Service is AWS's signing name, "ssm". Actions share one bucket. Without Actions, the quota applies to all actions
	// of the service that no other quota names. Each gives every action a bucket of its own.
	Service string
	Actions []string
	Each    bool
	// Burst is the size of the bucket, PerSecond the number of tokens that are added each second.
	Burst, PerSecond float64
	// Source is AWS's publication of the quota. If it is empty, AWS does not publish the quota and
	// the figures are assumptions.
	Source string
}

const (
	ssmQuotas    = "AWS General Reference, Systems Manager endpoints and quotas"
	statesQuotas = "Step Functions Developer Guide, Quotas related to API action throttling (US East, N. Virginia)"
	eventsQuotas = "EventBridge User Guide, Quotas (US East, N. Virginia)"
	ec2Quotas    = "EC2 Developer Guide, Request throttling for the Amazon EC2 API"
	tableQuotas  = "DynamoDB Developer Guide, Initial throughput for on-demand capacity mode"
)

// Quotas are the defaults. EKS and IAM do not publish rates but still throttle. Their figures are low assumptions.
var Quotas = []Quota{
	{Service: "ssm", Actions: []string{"GetParameter", "GetParameters", "GetParametersByPath"}, Burst: 40, PerSecond: 40,
		Source: ssmQuotas},
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

// Quotas of calls that the state machine makes without the gateway. They are compared with its histories.
const (
	// Transitions is the maximum number of state transitions per second, over all executions.
	Transitions = 5_000
	// Concurrency is the maximum number of functions that run concurrently in an account.
	Concurrency = 1_000
)
