package k8s_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const clusterARN = "arn:aws:eks:us-east-1:123456789012:cluster/demo"

// amazon returns an EKS whose cluster demo is this one.
func amazon(cluster types.Cluster) *awsfake.EKS {
	eks := awsfake.New().EKS
	cluster.Name, eks.Cluster = new("demo"), &cluster
	return eks
}

// dial connects to the cluster demo like a function does.
func dial(t *testing.T, clusters k8s.Clusters) (*k8s.Client, error) {
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	return k8s.Dial(config, clusters)(t.Context(), plan.Cluster{Name: "demo", ARN: clusterARN})
}

// Whoever can write the table can put any address into a stored plan. The function's token, which may be a cluster
// admin's, must go to the API server that EKS names.
func TestTheTokenGoesWhereEKSSays(t *testing.T) {
	tokens := func(token *string) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			*token = r.Header.Get("Authorization")
			w.WriteHeader(http.StatusNotFound)
		}))
		t.Cleanup(server.Close)
		return server
	}
	var there, elsewhere string
	right, wrong := tokens(&there), tokens(&elsewhere)
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	var stored plan.Plan // from a version that stored the address in the plan
	if err := json.Unmarshal(fmt.Appendf(nil, `{"cluster":{"name":"demo","arn":%q,"region":"us-east-1","endpoint":%q,"ca":"Q0E="}}`,
		clusterARN, wrong.URL), &stored); err != nil {
		t.Fatal(err)
	}
	client, err := k8s.Dial(config, amazon(types.Cluster{Arn: new(clusterARN), Endpoint: &right.URL}))(t.Context(), stored.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), k8s.Node, "", "n"); err != nil {
		t.Fatal(err)
	}
	if elsewhere != "" || there == "" {
		t.Errorf("the server of the plan was given %q, EKS's %q", elsewhere, there)
	}
}

// What the same call of a function has read of the cluster is not asked again, and is stored with no plan.
func TestWhatEKSHasJustAnswered(t *testing.T) {
	eks := awsfake.New().EKS
	eks.Fail("EKS.DescribeCluster", awsfake.Throttling)
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	answered := plan.Cluster{Name: "demo", ARN: clusterARN, Endpoint: "https://demo.example"}
	if _, err := k8s.Dial(config, eks)(t.Context(), answered); err != nil {
		t.Error(err)
	}
	answered.CA = "not base64!"
	if _, err := k8s.Dial(config, eks)(t.Context(), answered); err == nil || !strings.Contains(err.Error(), "certificate authority") {
		t.Errorf("the authority of the answer was not used: %v", err)
	}
	text, err := json.Marshal(answered)
	if err != nil || strings.Contains(string(text), "demo.example") || strings.Contains(string(text), "base64") {
		t.Errorf("a plan would have the address: %s, %v", text, err)
	}
}

func TestWhatEKSSaysOfACluster(t *testing.T) {
	here := types.Cluster{Arn: new(clusterARN), Endpoint: new("https://demo.example"), Status: types.ClusterStatusActive}
	with := func(change func(*types.Cluster)) *awsfake.EKS {
		changed := here
		change(&changed)
		return amazon(changed)
	}
	gone, throttled := awsfake.New().EKS, amazon(here)
	gone.Cluster = nil
	throttled.Fail("EKS.DescribeCluster", awsfake.Throttling)
	for _, c := range []struct {
		what string
		eks  *awsfake.EKS
		want string
	}{
		{"all well", amazon(here), ""},
		{"gone", gone,
			"cluster demo: EKS has no cluster of this name in this account and region any more"},
		{"another one", with(func(c *types.Cluster) { c.Arn = new("arn:aws:eks:us-east-1:999999999999:cluster/demo") }),
			"and the plan is about " + clusterARN},
		{"being made", with(func(c *types.Cluster) { c.Endpoint, c.Status = nil, types.ClusterStatusCreating }),
			"cluster demo: it is CREATING and has no API server yet"},
		{"an authority that is none",
			with(func(c *types.Cluster) { c.CertificateAuthority = &types.Certificate{Data: new("not base64!")} }),
			"cluster demo: certificate authority: "},
		{"throttled", throttled, "cluster demo: describe: "},
	} {
		_, err := dial(t, c.eks)
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
		if c.what == "gone" && !errors.Is(err, k8s.ErrGone) || c.what == "throttled" && !errors.Is(err, awsfake.Throttling) {
			t.Errorf("%s: %v does not tell what it was", c.what, err)
		}
	}
}
