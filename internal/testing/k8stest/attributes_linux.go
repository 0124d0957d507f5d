package k8stest

import "syscall"

// attributes makes the kernel kill a child process when the test process dies, for example by a timeout.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
