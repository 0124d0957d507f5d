// Package attached starts sandboxes that end with the program that started them, even if it crashes.
package attached

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// Start starts a sandbox of the checkout root, with its data in the folder state. It returns the environment of the sandbox's
// users, and a function that ends it and returns when all of it has ended. The sandbox also ends with the context.
func Start(ctx context.Context, root, state string) (user.Environment, func() error, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, nil, err
	}
	if state, err = filepath.Abs(state); err != nil {
		return nil, nil, err
	}
	input, leash, err := os.Pipe() // closing it ends the sandbox
	if err != nil {
		return nil, nil, err
	}
	defer input.Close()
	release := context.AfterFunc(ctx, func() { _ = leash.Close() })
	binary := filepath.Join(root, ".cache", "bin", "sandbox")
	end := func() error {
		release()
		_ = leash.Close()
		if out, err := exec.Command(binary, "down", "--root", root, "--state", state).CombinedOutput(); err != nil {
			return fmt.Errorf("sandbox down: %w: %s", err, out)
		}
		return nil
	}
	command := exec.Command(binary, "up", "--attached", "--root", root, "--state", state)
	command.Stdin, command.Stdout, command.Stderr = input, io.Discard, os.Stderr
	if err := command.Run(); err != nil {
		release()
		_ = leash.Close()
		return nil, nil, fmt.Errorf("sandbox up: %w (make parts builds what it needs)", err)
	}
	environment, err := user.Read(ctx, state+".env")
	if err != nil {
		_ = end()
		return nil, nil, err
	}
	return environment, end, nil
}
