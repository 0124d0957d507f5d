package k8s_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const clusterARN = "arn:aws:eks:us-east-1:123456789012:cluster/demo"

// Whoever may write the table can put any address into a stored plan. The function's token, a cluster administrator's, goes to the API
// server that EKS names.
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
	amazon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"cluster":{"name":"demo","arn":%q,"endpoint":%q,"status":"ACTIVE"}}`, clusterARN, right.URL)
	}))
	t.Cleanup(amazon.Close)
	config := aws.Config{Region: "us-east-1", BaseEndpoint: &amazon.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	var stored plan.Plan
	if err := json.Unmarshal(fmt.Appendf(nil, `{"cluster":{"name":"demo","arn":%q,"region":"us-east-1","endpoint":%q}}`, clusterARN, wrong.URL), &stored); err != nil {
		t.Fatal(err)
	}
	client, err := k8s.Dial(config)(t.Context(), stored.Cluster)
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
