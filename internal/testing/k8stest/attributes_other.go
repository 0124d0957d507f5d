//go:build !linux

package k8stest

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
