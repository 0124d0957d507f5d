package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Where no pass begins, watch ends with what there is: a write that changes nothing may be over before it is called.
func TestWatchEndsWithoutAPass(t *testing.T) {
	for _, c := range []struct{ what, parameter, says string }{
		{"a rack that is well", `{"Parameter":{"Value":"{\"state\":\"Reconciled\",\"time\":\"2026-01-02T03:04:05Z\"}"}}`, ""},
		{"a rack that nobody knows", "", "has no status"},
	} {
		cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			answers := map[string]string{
				"AWSStepFunctions.ListStateMachines": `{"stateMachines":[{"name":"Sawhorse-reconcile","stateMachineArn":"arn:aws:states:us-east-1:000000000000:stateMachine:Sawhorse-reconcile","type":"STANDARD","creationDate":0}]}`,
				"AWSStepFunctions.ListExecutions":    `{"executions":[]}`,
				"AmazonSSM.GetParameter":             c.parameter,
			}
			answer := answers[req.Header.Get("X-Amz-Target")]
			if answer == "" {
				w.WriteHeader(http.StatusBadRequest)
				answer = `{"__type":"ParameterNotFound"}`
			}
			_, _ = io.WriteString(w, answer)
		}))
		defer cloud.Close()
		config := aws.Config{Region: "us-east-1", BaseEndpoint: &cloud.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
		err := watch(t.Context(), config, "demo", time.Nanosecond)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
