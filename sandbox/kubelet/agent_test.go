package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
)

func TestAgent(t *testing.T) {
	var answer map[string]string
	var failure error
	a, err := startAgent(func(_ context.Context, namespace, name string) (map[string]string, error) {
		if namespace != "kube-system" || name != "karpenter" {
			t.Errorf("asked for %s/%s", namespace, name)
		}
		return answer, failure
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.stop()
	good := a.admit("kube-system", "karpenter")
	for _, c := range []struct {
		what, token string
		answer      map[string]string
		failure     error
		status      int
	}{
		{"a pod's token", good, map[string]string{"AccessKeyId": "A"}, nil, http.StatusOK},
		{"no token", "", nil, nil, http.StatusUnauthorized},
		{"a stranger's token", good + "x", nil, nil, http.StatusUnauthorized},
		{"an association deleted meanwhile", good, nil, nil, http.StatusNotFound},
		{"a role that does not trust", good, map[string]string{"error": "no trust"}, nil, http.StatusForbidden},
		{"MiniStack away", good, nil, errors.New("away"), http.StatusBadGateway},
	} {
		answer, failure = c.answer, c.failure
		request, _ := http.NewRequest(http.MethodGet, a.url, nil)
		request.Header.Set("Authorization", c.token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		_ = json.NewDecoder(response.Body).Decode(&got)
		response.Body.Close()
		if response.StatusCode != c.status || c.status == http.StatusOK && got["AccessKeyId"] != "A" {
			t.Errorf("%s: %d %v, want %d", c.what, response.StatusCode, got, c.status)
		}
	}
}
