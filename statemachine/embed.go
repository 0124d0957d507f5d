// Package statemachine is the Step Functions state machine "reconcile": one pass over one rack. It is driven by the plan
// and knows no step by name.
package statemachine

import _ "embed"

// Definition is the state machine in Amazon States Language. It wants these substitutions: Partition (of ARNs), TableName,
// FunctionPrefix (the ARN of a function without the last part of its name), SettleSeconds, Prefix (of the parameters).
//
//go:embed reconcile.asl.json
var Definition string
