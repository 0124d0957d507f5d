// Package user reads the environment of a sandbox's users from the lines that the sandbox prints for a shell.
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

// Environment is the environment for a user's commands. Each entry is NAME=value. If a name occurs twice, the last
// entry counts.
type Environment []string

// Read returns the environment that results when a shell reads a sandbox's environment file.
func Read(ctx context.Context, path string) (Environment, error) {
	text, err := exec.CommandContext(ctx, "bash", "-c", `. "$1" && env -0`, "bash", path).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: read: %w", path, err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

// Value returns a variable's value; empty if the variable is not set.
func (e Environment) Value(name string) string {
	for _, entry := range slices.Backward(e) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Endpoint returns the address of the local AWS.
func (e Environment) Endpoint() string { return e.Value("AWS_ENDPOINT_URL") }

// AWS returns a configuration with which Go calls the local AWS as the user.
func (e Environment) AWS() aws.Config {
	return aws.Config{
		Region: e.Value("AWS_REGION"), BaseEndpoint: aws.String(e.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider(e.Value("AWS_ACCESS_KEY_ID"), e.Value("AWS_SECRET_ACCESS_KEY"), ""),
	}
}
