package k8s_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const clusterARN = "arn:aws:eks:us-east-1:123456789012:cluster/demo"

// amazon is an EKS with one cluster, demo, or with an error.
type amazon struct {
	cluster types.Cluster
	err     error
}

func (a amazon) DescribeCluster(_ context.Context, in *eks.DescribeClusterInput,
	_ ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	if *in.Name != "demo" {
		return nil, fmt.Errorf("cluster %s was asked for", *in.Name)
	}
	return &eks.DescribeClusterOutput{Cluster: &a.cluster}, a.err
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
	client, err := k8s.Dial(config, amazon{cluster: types.Cluster{Arn: new(clusterARN), Endpoint: &right.URL}})(t.Context(), stored.Cluster)
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

func TestWhatEKSSaysOfACluster(t *testing.T) {
	here := types.Cluster{Arn: new(clusterARN), Endpoint: new("https://demo.example"), Status: types.ClusterStatusActive}
	with := func(change func(*types.Cluster)) amazon {
		changed := here
		change(&changed)
		return amazon{cluster: changed}
	}
	for _, c := range []struct {
		what string
		eks  amazon
		want string
	}{
		{"all well", amazon{cluster: here}, ""},
		{"gone", amazon{err: &types.ResourceNotFoundException{}},
			"cluster demo: EKS has no cluster of this name in this account and region any more"},
		{"another one", with(func(c *types.Cluster) { c.Arn = new("arn:aws:eks:us-east-1:999999999999:cluster/demo") }),
			"and the plan is about " + clusterARN},
		{"being made", with(func(c *types.Cluster) { c.Endpoint, c.Status = nil, types.ClusterStatusCreating }),
			"cluster demo: it is CREATING and has no API server yet"},
		{"an authority that is none",
			with(func(c *types.Cluster) { c.CertificateAuthority = &types.Certificate{Data: new("not base64!")} }),
			"cluster demo: certificate authority: "},
		{"throttled", amazon{err: awsfake.Throttling}, "cluster demo: describe: "},
	} {
		_, err := dial(t, c.eks)
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
		if c.what == "gone" && !errors.Is(err, k8s.ErrGone) || c.what == "throttled" && !errors.Is(err, c.eks.err) {
			t.Errorf("%s: %v does not tell what it was", c.what, err)
		}
	}
}
