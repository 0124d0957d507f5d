package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/sandbox/passes"
)

// client is how a test calls the local AWS where the AWS CLI would be too slow.
func client(t *testing.T) aws.Config {
	t.Helper()
	environment := sandbox.Environment(t)
	setting := func(name string) string {
		for _, pair := range slices.Backward(environment) {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return os.Getenv(name)
	}
	return aws.Config{
		Region: setting("AWS_REGION"), BaseEndpoint: aws.String(setting("AWS_ENDPOINT_URL")),
		Credentials: credentials.NewStaticCredentialsProvider(setting("AWS_ACCESS_KEY_ID"), setting("AWS_SECRET_ACCESS_KEY"), ""),
	}
}

// rounds waits until no execution runs and returns the rounds since a time, in order. Two of one rack at once are an error.
func rounds(t *testing.T, since time.Time) []passes.Round {
	t.Helper()
	history, err := passes.Since(t.Context(), client(t), since)
	if err != nil {
		t.Fatal(err)
	}
	for _, both := range history.Overlaps() {
		t.Errorf("two rounds at once: %s", both)
	}
	return history.Rounds
}

// write puts parameters of the rack demo, all at once.
func write(t *testing.T, values map[string]string) {
	t.Helper()
	store := ssm.NewFromConfig(client(t))
	failed := make(chan error, len(values))
	for name, value := range values {
		go func() {
			_, err := store.PutParameter(context.Background(), &ssm.PutParameterInput{
				Name: aws.String("/sawhorse/racks/demo/params/" + name), Value: &value, Type: "String", Overwrite: aws.Bool(true),
			})
			if err != nil {
				err = fmt.Errorf("%s=%s: %w", name, value, err)
			}
			failed <- err
		}()
	}
	for range values {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}
