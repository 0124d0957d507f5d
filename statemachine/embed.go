// Package statemachine has the Step Functions state machine "reconcile", which runs one pass over one rack. The plan
// lists the steps; the state machine does not contain any of their names.
package statemachine

import _ "embed"

// Definition is the state machine in Amazon States Language. It needs these substitutions: Partition (of ARNs),
// TableName, FunctionPrefix (the ARN of a function without the last part of its name), DebounceSeconds, Prefix (of the
// parameters).
//
//go:embed reconcile.asl.json
var Definition string
