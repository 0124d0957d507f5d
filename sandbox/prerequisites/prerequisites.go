// Package prerequisites checks, before anything is started, whether the sandbox can start. Its error is one sentence
// that names what to install or to free. The requirements for building the Go parts are checked in prerequisites.sh.
package prerequisites

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// PortVariable names the variable that sets the gateway's port. Without it, a free port is used.
const PortVariable = "SAWHORSE_SANDBOX_PORT"

// needed is the minimum free space in bytes. A sandbox in use writes a few hundred MB of data and logs.
const needed = 1 << 30

// Check returns an error for the first thing that is missing. cache is the folder with the built and installed parts,
// parts are paths in it, and port is empty unless a port was requested.
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
		return fmt.Errorf("port %s cannot be used (%w); free it, or set %s to another one, or to none for any free one", port,
			err, PortVariable)
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
