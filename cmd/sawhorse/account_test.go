package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// A connection that ends before its answer does is nothing to tell a user of: the answer was read.
func TestTheSDKWarnsNobody(t *testing.T) {
	short := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"Parameters":[]}`)
	}))
	t.Cleanup(short.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": short.URL, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		t.Setenv(name, value)
	}
	said, err := os.Create(t.TempDir() + "/stderr")
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	t.Cleanup(func() { os.Stderr = stderr; said.Close() })
	os.Stderr = said

	loaded, err := account(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ssm.NewFromConfig(loaded).GetParameters(t.Context(), &ssm.GetParametersInput{Names: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(said.Name()); err != nil || len(text) > 0 {
		t.Errorf("stderr has %q (%v)", text, err)
	}
}
