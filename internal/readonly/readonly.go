// Package readonly makes AWS clients that refuse to write. A step that runs with such clients ends where it would make
// its first change, so an audit finds what is due with the code that repairs it.
package readonly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// ErrWouldWrite is the error of a call that would change something. Nothing was sent.
var ErrWouldWrite = errors.New("not as it should be")

// refused is the ErrWouldWrite of an AWS operation.
type refused struct{ service, operation string }

func (r refused) Error() string { return fmt.Sprintf("would call %s %s", r.service, r.operation) }

func (refused) Unwrap() error { return ErrWouldWrite }

// Config returns a copy of a configuration whose clients refuse every operation that does not only read. The error
// wraps ErrWouldWrite and names the operation.
func Config(config aws.Config) aws.Config {
	config = config.Copy()
	// Behind the SDK's own, which puts the names of the service and of the operation into the context.
	named := (*awsmiddleware.RegisterServiceMetadata)(nil).ID()
	config.APIOptions = append(config.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Insert(middleware.InitializeMiddlewareFunc("ReadOnly", refuse), named, middleware.After)
	})
	return config
}

// refuse ends a call before it is signed, sent or retried.
func refuse(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	service, operation := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	if !Reads(operation) {
		return middleware.InitializeOutput{}, middleware.Metadata{}, refused{service, operation}
	}
	return next.HandleInitialize(ctx, in)
}

// reading are the beginnings of the names of operations that only read. Query is DynamoDB's.
var reading = []string{"Describe", "Get", "List", "Query"}

// Reads reports whether an operation only reads. An operation with another name counts as a write.
func Reads(operation string) bool {
	return slices.ContainsFunc(reading, func(verb string) bool { return strings.HasPrefix(operation, verb) })
}
