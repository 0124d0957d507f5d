package readonly_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sawhorse-io/sawhorse/internal/readonly"
)

// sent counts the requests that leave the SDK.
type sent int

func (s *sent) Do(*http.Request) (*http.Response, error) {
	*s++
	return nil, errors.New("no network")
}

func config(requests *sent) aws.Config {
	return readonly.Config(aws.Config{
		Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: requests,
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	})
}

func TestWritesAreRefused(t *testing.T) {
	requests := new(sent)
	c := config(requests)
	name := "demo"
	for what, call := range map[string]func(context.Context) error{
		"EKS DeleteNodegroup": func(ctx context.Context) error {
			_, err := eks.NewFromConfig(c).DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: &name, NodegroupName: &name})
			return err
		},
		"EventBridge PutEvents": func(ctx context.Context) error {
			_, err := eventbridge.NewFromConfig(c).PutEvents(ctx, &eventbridge.PutEventsInput{})
			return err
		},
		"DynamoDB UpdateItem": func(ctx context.Context) error {
			_, err := dynamodb.NewFromConfig(c).UpdateItem(ctx, &dynamodb.UpdateItemInput{})
			return err
		},
	} {
		if err := call(t.Context()); !errors.Is(err, readonly.ErrWouldWrite) || !strings.HasSuffix(err.Error(), "would call "+what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if *requests > 0 {
		t.Errorf("%d requests were sent", *requests)
	}
}

func TestReadsAreSent(t *testing.T) {
	requests := new(sent)
	_, err := eks.NewFromConfig(config(requests)).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
	if errors.Is(err, readonly.ErrWouldWrite) || *requests != 1 {
		t.Errorf("%v, %d requests", err, *requests)
	}
	presigned := sts.NewPresignClient(sts.NewFromConfig(config(requests)))
	if _, err := presigned.PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}); err != nil {
		t.Errorf("the token for the API server: %v", err)
	}
}
