package apifront

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// An API server that restarts cannot be reached, even if it already answers.
func TestNobodyReachesAnAPIServerThatIsAway(t *testing.T) {
	apiserver := httptest.NewTLSServer(http.NotFoundHandler())
	defer apiserver.Close()
	address, err := url.Parse(apiserver.URL)
	if err != nil {
		t.Fatal(err)
	}
	away := false
	handler, err := New(Config{
		APIServer: address, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: apiserver.Certificate().Raw}),
		Away: func() bool { return away }, Function: func(string) string { return "" }, Faults: &fault.Injector{},
	})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(handler)
	defer front.Close()
	for _, away = range []bool{false, true} {
		resp, err := http.Get(front.URL + "/version")
		if err == nil {
			resp.Body.Close()
		}
		if (err != nil) != away {
			t.Errorf("away %t: %v", away, err)
		}
	}
}

func TestActions(t *testing.T) {
	for _, c := range []struct{ method, url, contentType, want string }{
		{"GET", "/api/v1/namespaces/kube-system", "", "get namespaces"},
		{"GET", "/api/v1/nodes?limit=500", "", "list nodes"},
		{"GET", "/api/v1/pods?watch=true", "", "watch pods"},
		{"POST", "/api/v1/namespaces/kube-system/secrets", "", "create secrets"},
		{"PATCH", "/apis/karpenter.sh/v1/nodepools/workload", "application/apply-patch+yaml", "apply nodepools.karpenter.sh"},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/b", "application/merge-patch+json", "patch deployments.apps"},
		{"PUT", "/apis/apps/v1/namespaces/a/deployments/b/scale", "", "update deployments.apps/scale"},
		{"DELETE", "/apis/karpenter.sh/v1/nodepools/workload", "", "delete nodepools.karpenter.sh"},
		{"GET", "/version", "", "get /version"},
		{"GET", "/apis/karpenter.sh/v1", "", "get /apis/karpenter.sh/v1"},
	} {
		req := httptest.NewRequest(c.method, c.url, nil)
		req.Header.Set("Content-Type", c.contentType)
		if got := action(req); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.url, got, c.want)
		}
	}
}

func TestAccessKey(t *testing.T) {
	req := httptest.NewRequest(http.MethodGet, "/version", nil)
	for token, want := range map[string]string{
		// http://sts/?X-Amz-Credential=ASIA1/20260101/us-east-1/sts/aws4_request
		"Bearer k8s-aws-v1.aHR0cDovL3N0cy8_WC1BbXotQ3JlZGVudGlhbD1BU0lBMS8yMDI2MDEwMS91cy1lYXN0LTEvc3RzL2F3czRfcmVxdWVzdA": "ASIA1",
		"Bearer eyJ": "", "": "", "Bearer k8s-aws-v1.!": "",
	} {
		req.Header.Set("Authorization", token)
		if got := accessKey(req); got != want {
			t.Errorf("%s: %q, want %q", token, got, want)
		}
	}
}
