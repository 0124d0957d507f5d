//go:build !linux

package process

import "syscall"

// attributes puts a child into a process group of its own. Only Linux can also kill it when the supervisor is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
