// Package user reads the environment of a sandbox's users from the lines that the sandbox prints for a shell.
package user

import (
	"bytes"
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

// Sandbox calls one of the sandbox's own endpoints beside those of AWS, such as "calls?by=caller". It sends body as JSON
// unless that is nil. It decodes the answer into a value, or stores it as it is if into is a *string; nil ignores it.
func (e Environment) Sandbox(ctx context.Context, method, path string, body, into any) error {
	err := e.call(ctx, method, e.Endpoint()+"/_sandbox/"+path, body, into)
	if err != nil {
		return fmt.Errorf("sandbox: %s %s: %w", method, path, err)
	}
	return nil
}

func (e Environment) call(ctx context.Context, method, address string, body, into any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch text, plain := into.(*string); {
	case err != nil:
		return err
	case response.StatusCode >= 300:
		return fmt.Errorf("%s: %s", response.Status, answer)
	case plain:
		*text = string(answer)
		return nil
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}
