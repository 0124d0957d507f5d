package handler

import (
	"testing"

	"github.com/aws/smithy-go"
)

// The SDK repeats a call that was throttled, but not one that has reached a quota.
func TestQuotasAreNotTriedAgain(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
	config, err := awsConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]bool{
		"LimitExceededException": false, "ThrottlingException": true, "RequestLimitExceeded": true,
		"TooManyRequestsException": true, "AccessDenied": false,
	} {
		if got := config.Retryer().IsErrorRetryable(&smithy.GenericAPIError{Code: code}); got != want {
			t.Errorf("%s is tried again: %v, want %v", code, got, want)
		}
	}
	if got := config.Retryer().MaxAttempts(); got != callTries {
		t.Errorf("%d tries", got)
	}
}
