// Package prerequisites checks, before anything is started, whether the sandbox can start. Its error is one sentence
// that names what to install or to free. The requirements for building the Go parts are checked in prerequisites.sh.
package prerequisites

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// needed is the minimum free space in bytes. A sandbox in use writes a few hundred MB of data and logs.
const needed = 1 << 30

// Check returns an error for the first thing that is missing. cache is the folder with the built and installed parts,
// and parts are paths in it.
func Check(cache string, parts []string) error {
	for _, part := range parts {
		path := filepath.Join(cache, part)
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s is missing; run `make sandbox`, which builds and installs what the sandbox needs", path)
		}
	}
	free, err := freeSpace(cache)
	if err != nil {
		return fmt.Errorf("%s: look for free space: %w", cache, err)
	}
	return checkSpace(cache, free)
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
