package queue

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// InOrder reports whether the step would find nothing to do. It runs the step itself and stops before its first write,
// so that the check and the repair cannot differ.
func (q *Queue) InOrder(ctx context.Context, p *plan.Plan) (bool, error) {
	look := Queue{SQS: sqsReader{q.SQS}, Rules: rulesReader{q.Rules}, Deletions: q.Deletions, Now: q.Now}
	progress, err := look.Run(ctx, p, "")
	if errors.Is(err, errWouldWrite) || errors.As(err, new(*steps.Rejected)) {
		return false, nil
	}
	return err == nil && progress.Wait == 0, err
}

var errWouldWrite = errors.New("not in order")

// sqsReader and rulesReader pass on reads and refuse writes.
type sqsReader struct{ SQS }

func (sqsReader) CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error) {
	return nil, errWouldWrite
}

func (sqsReader) SetQueueAttributes(context.Context, *sqs.SetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error) {
	return nil, errWouldWrite
}

func (sqsReader) DeleteQueue(context.Context, *sqs.DeleteQueueInput, ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error) {
	return nil, errWouldWrite
}

func (sqsReader) TagQueue(context.Context, *sqs.TagQueueInput, ...func(*sqs.Options)) (*sqs.TagQueueOutput, error) {
	return nil, errWouldWrite
}

type rulesReader struct{ Rules }

func (rulesReader) TagResource(context.Context, *eventbridge.TagResourceInput, ...func(*eventbridge.Options)) (*eventbridge.TagResourceOutput, error) {
	return nil, errWouldWrite
}

func (rulesReader) PutRule(context.Context, *eventbridge.PutRuleInput, ...func(*eventbridge.Options)) (*eventbridge.PutRuleOutput, error) {
	return nil, errWouldWrite
}

func (rulesReader) PutTargets(context.Context, *eventbridge.PutTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.PutTargetsOutput, error) {
	return nil, errWouldWrite
}

func (rulesReader) DeleteRule(context.Context, *eventbridge.DeleteRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DeleteRuleOutput, error) {
	return nil, errWouldWrite
}

func (rulesReader) RemoveTargets(context.Context, *eventbridge.RemoveTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.RemoveTargetsOutput, error) {
	return nil, errWouldWrite
}
