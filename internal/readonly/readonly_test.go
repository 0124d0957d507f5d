package readonly_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/steps/access"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
	"github.com/sawhorse-io/sawhorse/internal/steps/autoscaler"
	"github.com/sawhorse-io/sawhorse/internal/steps/infrastructure"
	"github.com/sawhorse-io/sawhorse/internal/steps/network"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodegroups"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodepools"
	"github.com/sawhorse-io/sawhorse/internal/steps/queue"
	"github.com/sawhorse-io/sawhorse/internal/steps/room"
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
		if err := call(t.Context()); !errors.Is(err, readonly.ErrWouldWrite) || !strings.Contains(err.Error(), what) {
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
	if _, err := sts.NewPresignClient(sts.NewFromConfig(config(requests))).PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}); err != nil {
		t.Errorf("the token for the API server: %v", err)
	}
}

// writing are the verbs of the operations with which the steps write.
var writing = []string{"Associate", "Attach", "Create", "Delete", "Detach", "Put", "Remove", "Set", "Tag", "Terminate", "Update"}

// A new operation of a step is a read or a write by its verb. A read with another verb would make its step due for ever.
func TestEveryOperationOfTheStepsIsKnown(t *testing.T) {
	reads, writes := 0, 0
	for _, of := range []reflect.Type{
		reflect.TypeFor[access.EKS](), reflect.TypeFor[access.IAM](), reflect.TypeFor[admin.EKS](), reflect.TypeFor[autoscaler.AutoScaling](),
		reflect.TypeFor[infrastructure.EKS](), reflect.TypeFor[infrastructure.IAM](), reflect.TypeFor[network.EC2](), reflect.TypeFor[nodegroups.EKS](),
		reflect.TypeFor[nodepools.EC2](), reflect.TypeFor[queue.SQS](), reflect.TypeFor[queue.Rules](), reflect.TypeFor[room.EKS](),
	} {
		for i := range of.NumMethod() {
			operation := of.Method(i).Name
			isWrite := slices.ContainsFunc(writing, func(verb string) bool { return strings.HasPrefix(operation, verb) })
			switch isRead := readonly.Reads(operation); {
			case isRead == isWrite:
				t.Errorf("%s.%s: neither a read nor a write by its verb", of, operation)
			case isRead:
				reads++
			default:
				writes++
			}
		}
	}
	table := reflect.TypeFor[rack.Table]()
	var refused []string
	for i := range table.NumMethod() {
		if operation := table.Method(i).Name; !readonly.Reads(operation) {
			refused = append(refused, operation)
		}
	}
	// Scan completes the list of racks, which resync does.
	if want := []string{"DeleteItem", "PutItem", "Scan", "UpdateItem"}; !slices.Equal(refused, want) {
		t.Errorf("refused of the table: %v, want %v", refused, want)
	}
	if reads < 15 || writes < 30 {
		t.Errorf("%d reads and %d writes: the test has lost the steps", reads, writes)
	}
}
