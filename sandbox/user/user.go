// Package user reads the environment of a sandbox's users from the lines that the sandbox prints for a shell.
package user

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

// Run runs a line of shell as a user would, and returns its output.
func (e Environment) Run(ctx context.Context, line string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-c", line)
	command.Env = e
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", line, err, text)
	}
	return strings.TrimSpace(string(text)), nil
}

// Ask calls one of the sandbox's own endpoints beside those of AWS, "faults" or "rates". It decodes the answer into a
// value; nil ignores the answer.
func (e Environment) Ask(ctx context.Context, method, what string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, e.Endpoint()+"/_sandbox/"+what, nil)
	if err != nil {
		return fmt.Errorf("sandbox's %s: %w", what, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("sandbox's %s: %w", what, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
	case response.StatusCode >= 300:
		err = fmt.Errorf("%s: %s", response.Status, text)
	case into != nil:
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("sandbox's %s: %s: %w", what, method, err)
	}
	return nil
}
