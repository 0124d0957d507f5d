package process

import "syscall"

// attributes puts a child into a process group of its own, so that its own children can be stopped with it and a Ctrl-C
// on the terminal reaches the supervisor only, and has the kernel end it when the supervisor is killed.
// The kernel ties Pdeathsig to the thread that started the child; Go ends a thread only when a goroutine locked to it
// returns, and nothing here locks one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
