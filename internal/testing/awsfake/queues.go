package awsfake

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Queue is an SQS queue.
type Queue struct {
	Attributes, Tags map[string]string
	made             time.Time
}

// SQS holds queues by URL. For 60 seconds after a deletion it refuses to create a queue of the same name, unless the
// deleted queue still answers.
type SQS struct {
	*Calls
	Queues  map[string]*Queue
	deleted map[string]gone[Queue]
	past    past[Queue]
}

func newSQS(calls *Calls) *SQS {
	return &SQS{Calls: calls, Queues: map[string]*Queue{}, deleted: map[string]gone[Queue]{}, past: past[Queue]{}}
}

// QueueURL returns the URL of a queue.
func QueueURL(name string) string {
	return "https://sqs." + Region + ".amazonaws.com/" + Account + "/" + name
}

func (s *SQS) queue(call, url string) (*Queue, error) {
	if err := s.call("SQS."+call, url); err != nil {
		return nil, err
	}
	queue := s.Queues[url]
	if reads("." + call) {
		queue = s.past.shown(s.Calls, url, queue)
	} else {
		s.past.wrote(s.Calls, url, queue.copied())
	}
	if last := s.deleted[url]; queue == nil && s.lags(&last.at, s.Lag.Dying) {
		return last.was, nil
	}
	if queue == nil || call != "CreateQueue" && s.lags(&queue.made, s.Lag.Queues) {
		return nil, &types.QueueDoesNotExist{}
	}
	return queue, nil
}

func (s *SQS) GetQueueUrl(_ context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	if _, err := s.queue("GetQueueUrl", QueueURL(*in.QueueName)); err != nil {
		return nil, err
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: new(QueueURL(*in.QueueName))}, nil
}

func (s *SQS) CreateQueue(_ context.Context, in *sqs.CreateQueueInput, _ ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error) {
	url := QueueURL(*in.QueueName)
	queue, err := s.queue("CreateQueue", url)
	if queue != nil && !maps.Equal(queue.Attributes, in.Attributes) {
		return nil, &types.QueueNameExists{}
	}
	if _, missing := err.(*types.QueueDoesNotExist); err != nil && !missing {
		return nil, err
	}
	if last, ok := s.deleted[url]; ok && queue == nil && s.Now().Sub(last.at) < time.Minute {
		return nil, &types.QueueDeletedRecently{}
	}
	if queue == nil {
		s.Queues[url] = &Queue{Attributes: maps.Clone(in.Attributes), Tags: maps.Clone(in.Tags), made: s.Now()}
	}
	return &sqs.CreateQueueOutput{QueueUrl: &url}, nil
}

func (s *SQS) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput,
	_ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	queue, err := s.queue("GetQueueAttributes", *in.QueueUrl)
	if err != nil {
		return nil, err
	}
	all := map[string]string{
		"VisibilityTimeout": "30", "ApproximateNumberOfMessages": "0", "CreatedTimestamp": strconv.FormatInt(queue.made.Unix(), 10),
	}
	maps.Copy(all, queue.Attributes)
	if policy, ok := all["Policy"]; ok {
		all["Policy"] = reordered(policy)
	}
	return &sqs.GetQueueAttributesOutput{Attributes: all}, nil
}

func (s *SQS) SetQueueAttributes(_ context.Context, in *sqs.SetQueueAttributesInput,
	_ ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error) {
	queue, err := s.queue("SetQueueAttributes", *in.QueueUrl)
	if err != nil {
		return nil, err
	}
	maps.Copy(queue.Attributes, in.Attributes)
	return &sqs.SetQueueAttributesOutput{}, nil
}

func (s *SQS) ListQueueTags(_ context.Context, in *sqs.ListQueueTagsInput, _ ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error) {
	queue, err := s.queue("ListQueueTags", *in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return &sqs.ListQueueTagsOutput{Tags: maps.Clone(queue.Tags)}, nil
}

func (s *SQS) TagQueue(_ context.Context, in *sqs.TagQueueInput, _ ...func(*sqs.Options)) (*sqs.TagQueueOutput, error) {
	queue, err := s.queue("TagQueue", *in.QueueUrl)
	if err != nil {
		return nil, err
	}
	queue.Tags = with(queue.Tags, in.Tags)
	return &sqs.TagQueueOutput{}, nil
}

func (s *SQS) DeleteQueue(_ context.Context, in *sqs.DeleteQueueInput, _ ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error) {
	queue, err := s.queue("DeleteQueue", *in.QueueUrl)
	if err != nil {
		return nil, err
	}
	delete(s.Queues, *in.QueueUrl)
	s.deleted[*in.QueueUrl] = gone[Queue]{queue, s.Now()}
	return &sqs.DeleteQueueOutput{}, nil
}
