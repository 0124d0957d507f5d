package main

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
	"github.com/sawhorse-io/sawhorse/sandbox/process"
)

// ministack returns the process of MiniStack with the sandbox's wrapper. Its Lambdas inherit its environment,
// so that is a clean one, and they reach AWS through the gateway. AUTH makes it verify signatures and
// evaluate each role's policies.
func (l layout) ministack(port int, gateway string, behind lag) process.Spec {
	return process.Spec{
		Name: "ministack", Path: l.part("ministack/bin/python"), Args: []string{l.wrapper()}, Dir: l.data(),
		Env: append(append(l.cleanEnvironment(), behind.environment()...),
			"GATEWAY_PORT="+strconv.Itoa(port),
			"BIND_HOST=127.0.0.1",
			"MINISTACK_REGION="+region,
			"MINISTACK_ACCOUNT_ID="+account,
			"SFTP_ENABLED=0", "IOT_MTLS_ENABLED=0",
			"AUTH=true",
			"STATE_DIR="+l.data("ministack"), "S3_PERSIST=1", "S3_DATA_DIR="+l.data("s3"), // the state that a restart continues with
			"SANDBOX_DECISIONS="+l.decisions(), "SANDBOX_IMAGES="+l.amis(),
			"LAMBDA_EXECUTOR=local",
			"DOCKER_HOST=unix://"+l.data("no-docker"), // otherwise it would start a real k3s if it finds Docker
			"AWS_ENDPOINT_URL="+gateway,
			"AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey,
			"AWS_REGION="+region, "AWS_DEFAULT_REGION="+region,
		),
	}
}

// moto returns the process of moto, which emulates EC2 and Auto Scaling.
func (l layout) moto(port int) process.Spec {
	return process.Spec{
		Name: "moto", Path: l.part("venv/bin/moto_server"), Dir: l.data(),
		Args: []string{"-H", "127.0.0.1", "-p", strconv.Itoa(port)},
		Env:  append(l.cleanEnvironment(), "MOTO_ACCOUNT_ID="+account, "AWS_DEFAULT_REGION="+region, "MOTO_AMIS_PATH="+l.amis()),
	}
}

// socket is the socket for commands of the AWS CLI, in the folder of the tools.
const socket = "aws.sock"

// commands returns the process that runs the AWS CLI's commands.
func (l layout) commands() process.Spec {
	return process.Spec{
		Name: "aws", Path: l.part("venv/bin/python"), Args: []string{l.python("aws.py"), socket}, Dir: l.tools(),
		Env: l.cleanEnvironment(),
	}
}

// cleanEnvironment returns the variables that every process needs. None of the user's AWS settings may be passed on.
func (l layout) cleanEnvironment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.data(), "TMPDIR=" + l.data("tmp"), "LANG=C.UTF-8",
		"PYTHONUNBUFFERED=1", "AWS_EC2_METADATA_DISABLED=true",
	}
}

func local(port int) *url.URL {
	return &url.URL{Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(port)}
}

// answers waits until the server of a port answers with success.
func answers(ctx context.Context, name string, port int, path string) error {
	return process.Until(ctx, name+": wait until it answers", func() error {
		return ask.JSON(ctx, http.MethodGet, local(port).JoinPath(path).String(), nil, nil)
	})
}
