// Package user reads the environment of a sandbox's users from the lines that the sandbox prints for a shell.
package user

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
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
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what bash has started ends with it
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 5 * time.Second
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", line, err, text)
	}
	return strings.TrimSpace(string(text)), nil
}

// Sandbox calls one of the sandbox's own endpoints beside those of AWS, such as "age?by=1h". It sends body as JSON
// unless that is nil. It decodes the answer into a value, or stores it as it is if into is a *string; nil ignores it.
func (e Environment) Sandbox(ctx context.Context, method, path string, body, into any) error {
	err := ask.JSON(ctx, method, e.Endpoint()+"/_sandbox/"+path, body, into)
	if err != nil {
		return fmt.Errorf("sandbox: %s %s: %w", method, path, err)
	}
	return nil
}

// Put writes a setting of a rack.
func (e Environment) Put(ctx context.Context, rack, name, value string) error {
	_, err := ssm.NewFromConfig(e.AWS()).PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String("/sawhorse/racks/" + rack + "/params/" + name), Value: &value, Type: "String", Overwrite: aws.Bool(true),
	})
	if err != nil {
		return fmt.Errorf("rack %s: parameter %s: put: %w", rack, name, err)
	}
	return nil
}
