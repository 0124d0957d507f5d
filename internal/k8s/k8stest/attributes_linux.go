package k8stest

import "syscall"

// attributes has the kernel end a child when the test process dies, also of a timeout.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
