package readonly_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sawhorse-io/sawhorse/internal/readonly"
)

// cloud answers every request with the same status and body, except for the first refused ones, and counts them.
type cloud struct {
	mutex   sync.Mutex
	sent    int
	refused int
	status  int
	body    string
}

func (c *cloud) Do(request *http.Request) (*http.Response, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if request.Body != nil {
		if _, err := io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	c.sent++
	status, body := c.status, c.body
	if c.refused > 0 {
		c.refused--
		status, body = http.StatusTooManyRequests, `{"message":"Rate exceeded"}`
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if status == http.StatusNotFound {
		header.Set("X-Amzn-ErrorType", "ResourceNotFoundException")
	}
	return &http.Response{
		StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func onceConfig(c *cloud) aws.Config {
	return readonly.Once(aws.Config{
		Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: c,
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	})
}

func group(t *testing.T, c aws.Config, name string) (*types.Nodegroup, error) {
	out, err := eks.NewFromConfig(c).DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{
		ClusterName: new("demo"), NodegroupName: &name,
	})
	if err != nil {
		return nil, err
	}
	return out.Nodegroup, nil
}

// Equal reads share one request, whichever client makes them, and share no data.
func TestAReadIsSentOnce(t *testing.T) {
	c := &cloud{status: 200, body: `{"nodegroup":{"nodegroupName":"a","labels":{"x":"y"}}}`}
	config := onceConfig(c)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			g, err := group(t, config, "a")
			if err != nil || g.Labels["x"] != "y" {
				t.Errorf("%+v, %v", g, err)
				return
			}
			g.Labels["x"] = "changed"
		})
	}
	if all.Wait(); c.sent != 1 {
		t.Errorf("%d requests", c.sent)
	}
	if _, err := group(t, config, "b"); err != nil || c.sent != 2 {
		t.Errorf("another group: %v, %d requests", err, c.sent)
	}
	if _, err := group(t, onceConfig(c), "a"); err != nil || c.sent != 3 {
		t.Errorf("another look: %v, %d requests", err, c.sent)
	}
}

// IAM names what is read in the body, and DynamoDB names the operation in a header.
func TestEqualMeansTheWholeRequest(t *testing.T) {
	c := &cloud{status: 200, body: `<GetRoleResponse><GetRoleResult><Role><RoleName>a</RoleName></Role></GetRoleResult></GetRoleResponse>`}
	roles := iam.NewFromConfig(onceConfig(c))
	for _, name := range []string{"a", "b", "a"} {
		if _, err := roles.GetRole(t.Context(), &iam.GetRoleInput{RoleName: &name}); err != nil {
			t.Error(err)
		}
	}
	if c.sent != 2 {
		t.Errorf("%d requests about two roles", c.sent)
	}
	c = &cloud{status: 200, body: `{}`}
	tables := dynamodb.NewFromConfig(onceConfig(c))
	for range 2 {
		if _, err := tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: new("a")}); err != nil {
			t.Error(err)
		}
		if _, err := tables.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: new("a")}); err != nil {
			t.Error(err)
		}
	}
	if c.sent != 2 {
		t.Errorf("%d requests of two operations", c.sent)
	}
	c.sent = 0
	for range 20 { // the SDK writes the keys of the map in any order
		key := map[string]dynamotypes.AttributeValue{}
		for _, name := range []string{"pk", "sk", "x", "y"} {
			key[name] = &dynamotypes.AttributeValueMemberS{Value: name}
		}
		if _, err := tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: new("a"), Key: key}); err != nil {
			t.Error(err)
		}
	}
	if c.sent != 1 {
		t.Errorf("%d requests for one item", c.sent)
	}
}

// What is not there stays so during one look. What was throttled is tried again.
func TestWhichErrorsAreKept(t *testing.T) {
	c := &cloud{status: 404, body: `{"message":"no"}`, refused: 2}
	config := onceConfig(c)
	for _, want := range []struct {
		missing bool
		sent    int
	}{{false, 1}, {false, 2}, {true, 3}, {true, 3}} {
		_, err := group(t, config, "a")
		if missing := errors.As(err, new(*types.ResourceNotFoundException)); missing != want.missing || c.sent != want.sent || err == nil {
			t.Errorf("%v, %d requests; want %+v", err, c.sent, want)
		}
	}
}

// An object in S3 may be long. It is not held in memory.
func TestALongAnswerIsNotKept(t *testing.T) {
	for length, sent := range map[int]int{1 << 20: 1, 1<<20 + 1: 2} {
		c := &cloud{status: 200, body: strings.Repeat("x", length)}
		objects := s3.NewFromConfig(onceConfig(c))
		for range 2 {
			out, err := objects.GetObject(t.Context(), &s3.GetObjectInput{Bucket: new("b"), Key: new("k")})
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(out.Body); err != nil || string(body) != c.body {
				t.Errorf("%d bytes: %d read, %v", length, len(body), err)
			}
			out.Body.Close()
		}
		if c.sent != sent {
			t.Errorf("%d bytes: %d requests", length, c.sent)
		}
	}
}

func TestOnceRefusesWrites(t *testing.T) {
	c := &cloud{status: 200}
	_, err := eks.NewFromConfig(onceConfig(c)).DeleteNodegroup(t.Context(), &eks.DeleteNodegroupInput{
		ClusterName: new("a"), NodegroupName: new("b"),
	})
	if !errors.Is(err, readonly.ErrWouldWrite) || c.sent > 0 {
		t.Errorf("%v, %d requests", err, c.sent)
	}
}
