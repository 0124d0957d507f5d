package fault

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// signalCaller sends a signal to the function's process at the other end of a local connection: SIGKILL, as Lambda does
// when a function runs out of memory, or SIGSTOP. It compares both ends, because another process may use the same port
// for a connection to another server. It signals only functions.
func signalCaller(req *http.Request, signal syscall.Signal) error {
	server, _ := req.Context().Value(http.LocalAddrContextKey).(fmt.Stringer)
	if server == nil {
		return fmt.Errorf("signal: the connection's own address is not known")
	}
	pid := holder(inode(req.RemoteAddr, server.String()))
	if pid == 0 || !function(pid) {
		return fmt.Errorf("signal: no function's process has the connection from %s", req.RemoteAddr)
	}
	return syscall.Kill(pid, signal)
}

// function reports whether a process is a Lambda function.
func function(pid int) bool {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && strings.Contains("\x00"+string(environment), "\x00AWS_LAMBDA_FUNCTION_NAME=")
}

// inode returns the inode of the socket with these two ends, "" if there is none.
func inode(local, remote string) string {
	from, to := hexadecimal(local), hexadecimal(remote)
	file, err := os.Open("/proc/net/tcp")
	if err != nil || from == "" || to == "" {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 9 && fields[1] == from && fields[2] == to {
			return fields[9]
		}
	}
	return ""
}

// hexadecimal returns an IPv4 address with its port in the form of /proc/net/tcp: 127.0.0.1:80 is 0100007F:0050.
func hexadecimal(address string) string {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil || !parsed.Addr().Unmap().Is4() {
		return ""
	}
	ip := parsed.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), parsed.Port())
}

// holder returns the id of the process that has the socket open, 0 if there is none.
func holder(inode string) int {
	if inode == "" || inode == "0" {
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
