package awsfake

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// Lambda takes asynchronous calls of functions and executes none.
type Lambda struct {
	*Calls
	// Invoked has the functions with their events: "Sawhorse-audit {…}".
	Invoked []string
}

// Invoke refuses synchronous calls, because no function would answer.
func (l *Lambda) Invoke(_ context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	subject := *in.FunctionName + " " + string(in.Payload)
	if err := l.call("Lambda.Invoke", subject); err != nil {
		return nil, err
	}
	if in.InvocationType != types.InvocationTypeEvent {
		return nil, refuse("InvalidParameterValueException", "the fake only takes asynchronous calls")
	}
	l.Invoked = append(l.Invoked, subject)
	return &lambda.InvokeOutput{StatusCode: 202}, nil
}
