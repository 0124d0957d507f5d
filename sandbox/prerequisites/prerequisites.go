// Package prerequisites says, before anything is started, what would keep the sandbox from starting: one sentence that
// names the thing to install or to free. What must be there before the Go parts can be built is in prerequisites.sh.
package prerequisites

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// PortVariable may ask for the gateway's port; a free one is taken otherwise.
const PortVariable = "SAWHORSE_SANDBOX_PORT"

// needed is the least free space, in bytes: a sandbox in use writes a few hundred MB of data and logs.
const needed = 1 << 30

// Check returns the first thing that is missing. cache is the folder that the parts were built and installed into, parts
// are paths in it; port is empty unless one is asked for.
func Check(cache string, parts []string, port string) error {
	for _, part := range parts {
		path := filepath.Join(cache, part)
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s is missing; run `make sandbox`, which builds and installs what the sandbox needs", path)
		}
	}
	if err := checkPort(port); err != nil {
		return err
	}
	free, err := freeSpace(cache)
	if err != nil {
		return fmt.Errorf("%s: look for free space: %w", cache, err)
	}
	return checkSpace(cache, free)
}

func checkPort(port string) error {
	if port == "" {
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return fmt.Errorf("port %s cannot be used (%w); free it, or set %s to another one, or to none for any free one", port, err, PortVariable)
	}
	return listener.Close()
}

func freeSpace(path string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return 0, err
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil
}

func checkSpace(path string, free uint64) error {
	if free < needed {
		return fmt.Errorf("the disk of %s has %d MB free; free some space, the sandbox needs %d MB", path, free>>20, needed>>20)
	}
	return nil
}
