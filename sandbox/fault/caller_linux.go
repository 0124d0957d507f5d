package fault

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killCaller ends the process at the other end of a local connection, as Lambda does with one that uses too much memory.
func killCaller(req *http.Request) {
	_, port, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return
	}
	if pid := holder(inode(number)); pid > 0 && pid != os.Getpid() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it has gone: that is what was wanted
	}
}

// inode is the socket's that has the local TCP port; "" if none.
func inode(port int) string {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[9] != "0" {
				file.Close()
				return fields[9]
			}
		}
		file.Close()
	}
	return ""
}

// holder is the process that has the socket open; 0 if none.
func holder(inode string) int {
	if inode == "" {
		return 0
	}
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			return pid
		}
	}
	return 0
}
