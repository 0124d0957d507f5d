package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// deploy deploys the stack to the local AWS with the ordinary CDK CLI, as it would be deployed to an account. The
// template comes from `cdk synth` with the sandbox's context values.
func (s *sandbox) deploy(ctx context.Context) error {
	if err := s.cdk(ctx, "bootstrap", "aws://"+account+"/"+region); err != nil {
		return err
	}
	if err := s.cdk(ctx, "deploy", "--require-approval", "never", "--progress", "events"); err != nil {
		return err
	}
	s.report.say("the stack is deployed")
	return nil
}

// cdk runs one command of the CDK CLI on the synthesized template. Its output goes to cdk-COMMAND.log.
func (s *sandbox) cdk(ctx context.Context, arguments ...string) error {
	path := filepath.Join(s.logs(), "cdk-"+arguments[0]+".log")
	log, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cdk %s: create log: %w", arguments[0], err)
	}
	defer log.Close()
	command := exec.CommandContext(ctx, s.part("npm/node_modules/.bin/cdk"), append(arguments, "--app", s.part("cdk.out"), "--ci")...)
	command.Dir, command.Stdout, command.Stderr = s.data(), log, log
	command.Env = append(s.cleanEnvironment(),
		"AWS_ENDPOINT_URL="+s.gateway.String(), "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey,
		"AWS_REGION="+region, "AWS_DEFAULT_REGION="+region, "CDK_DISABLE_CLI_TELEMETRY=1",
	)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	if err := command.Run(); err != nil {
		return fmt.Errorf("cdk %s: %w: %s", arguments[0], err, lastLine(path))
	}
	return nil
}

// lastLine returns the last line of a failed command's log.
func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
