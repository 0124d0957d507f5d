// Package user is who works with a sandbox: by what its printed lines give a shell.
package user

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Environment is that of a user's commands, each entry a NAME=value; of two with one name the last is in force.
type Environment []string

// Read gives the environment that a file of a sandbox's lines gives a shell.
func Read(ctx context.Context, path string) (Environment, error) {
	text, err := exec.CommandContext(ctx, "bash", "-c", `. "$1" && env -0`, "bash", path).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: read: %w", path, err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

// Value is a variable's; it is empty where the variable is not set.
func (e Environment) Value(name string) string {
	for _, entry := range slices.Backward(e) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Endpoint is the address of the local AWS.
func (e Environment) Endpoint() string { return e.Value("AWS_ENDPOINT_URL") }

// AWS is how Go calls the local AWS as the user does.
func (e Environment) AWS() aws.Config {
	return aws.Config{
		Region: e.Value("AWS_REGION"), BaseEndpoint: aws.String(e.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider(e.Value("AWS_ACCESS_KEY_ID"), e.Value("AWS_SECRET_ACCESS_KEY"), ""),
	}
}
