package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// layout gives the paths of all files and folders.
type layout struct{ root, state string }

func newLayout(root, state string) (layout, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return layout{}, fmt.Errorf("%s: make absolute: %w", root, err)
	}
	if state == "" {
		state = filepath.Join(root, ".cache", "sandbox")
	}
	state, err = filepath.Abs(state)
	if err != nil {
		return layout{}, fmt.Errorf("%s: make absolute: %w", state, err)
	}
	return layout{root, state}, nil
}

// parts are the files that the Makefile builds and installs into the cache before the sandbox can start.
var parts = []string{
	"bin/cluster", "bin/kubectl", "ministack/bin/python", "venv/bin/moto_server", "venv/bin/aws", "npm/node_modules/.bin/cdk",
	"cdk.out/synthesized", "bin/sawhorse",
}

func (l layout) cache() string             { return filepath.Join(l.root, ".cache") }
func (l layout) part(name string) string   { return filepath.Join(l.cache(), name) }
func (l layout) wrapper() string           { return filepath.Join(l.root, "sandbox", "ministack", "wrapper.py") }
func (l layout) python(name string) string { return filepath.Join(l.root, "sandbox", "python", name) }
func (l layout) lock() string              { return filepath.Join(l.state, "lock") }
func (l layout) reason() string            { return filepath.Join(l.state, "reason") }
func (l layout) supervisorLog() string     { return filepath.Join(l.state, "supervisor.log") }
func (l layout) data(names ...string) string {
	return filepath.Join(append([]string{l.state, "data"}, names...)...)
}
func (l layout) logs() string        { return filepath.Join(l.state, "logs") }
func (l layout) decisions() string   { return filepath.Join(l.state, "decisions.jsonl") }
func (l layout) amis() string        { return l.data("images.json") }
func (l layout) tools() string       { return filepath.Join(l.state, "bin") }
func (l layout) environment() string { return l.state + ".env" }

// empty removes the files of an earlier sandbox and creates the folders again. Every start begins from nothing.
func (l layout) empty() error {
	for _, path := range []string{l.environment(), l.reason(), l.data(), l.logs(), l.decisions(), l.tools()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("%s: remove what an earlier sandbox left: %w", path, err)
		}
	}
	for _, path := range []string{l.data("tmp"), l.logs(), l.tools()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("%s: create: %w", path, err)
		}
	}
	for tool, part := range map[string]string{"kubectl": "bin/kubectl", "sawhorse": "bin/sawhorse", "helm": "bin/helm"} {
		if err := os.Symlink(l.part(part), filepath.Join(l.tools(), tool)); err != nil {
			return fmt.Errorf("%s: link: %w", tool, err)
		}
	}
	for tool, line := range map[string]string{
		"aws": fmt.Sprintf("exec %s -IS %s %s", quote(l.part("venv/bin/python")), quote(l.python("aws_client.py")), quote(l.tools())),
		"cdk": fmt.Sprintf("cd %s && exec sandbox/cdk.sh", quote(l.root)),
	} {
		launcher := fmt.Sprintf("#!/bin/sh\n%s \"$@\"\n", line)
		if err := os.WriteFile(filepath.Join(l.tools(), tool), []byte(launcher), 0o700); err != nil {
			return fmt.Errorf("%s: write launcher: %w", tool, err)
		}
	}
	return nil
}
