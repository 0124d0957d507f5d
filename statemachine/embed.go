// Package statemachine has the Step Functions state machine "reconcile", which runs one pass over one rack. The plan
// lists the steps; the state machine does not contain any of their names.
package statemachine

import _ "embed"

// Definition is the state machine in Amazon States Language. It needs these substitutions: Partition (of ARNs),
// TableName, Functions (a JSONata object: the ARN of a version of each function by the function's name), Parameters (a JSONata
// array of all names), Alias (the ARN through which the state machine is started), DebounceSeconds, Prefix (of the parameters).
//
//go:embed reconcile.asl.json
var Definition string
