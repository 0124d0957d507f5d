package process

import "syscall"

// attributes puts a child into a process group of its own. Its own children can then be stopped with it, and a Ctrl-C
// on the terminal reaches only the supervisor. attributes also makes the kernel kill the child when the supervisor is
// killed. The kernel ties Pdeathsig to the thread that started the child. Go ends a thread only when a goroutine locked
// to it returns, and no goroutine here is locked.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
