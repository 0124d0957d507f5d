package main

import (
	"fmt"
	"os"
	"strings"
)

// Settings of every caller of the local AWS.
const (
	region    = "us-east-1"
	account   = "000000000000"
	accessKey = "test"
	secretKey = "test"
)

// writeEnvironment writes the lines that make ordinary aws and kubectl commands use the sandbox. The existence of the
// file means that the sandbox is ready, so it is written completely or not at all.
func writeEnvironment(path, gateway, kubeconfig, tools string, behind lag) error {
	lines := []string{
		"unset AWS_PROFILE AWS_SESSION_TOKEN",
		"export AWS_ENDPOINT_URL=" + gateway,
		"export AWS_ACCESS_KEY_ID=" + accessKey,
		"export AWS_SECRET_ACCESS_KEY=" + secretKey,
		"export AWS_REGION=" + region,
		"export AWS_DEFAULT_REGION=" + region,
		`export AWS_PAGER=""`,
		"export AWS_DISABLE_HOST_PREFIX_INJECTION=true", // TestState goes to sync-HOST, which the local AWS has no name for
		"export KUBECONFIG=" + quote(kubeconfig),
		behind.exports(), // for cdk, which deploys the stack again with the same settings
		"export PATH=" + quote(tools) + `:"$PATH"`,
	}
	if proxied() {
		lines = append(lines, "export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost")
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("%s: write: %w", temporary, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("%s: rename: %w", path, err)
	}
	return nil
}

// proxied reports whether commands would use a proxy for the sandbox's addresses.
func proxied() bool {
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// quote returns the text as one word for a POSIX shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
