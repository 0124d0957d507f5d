//go:build !linux

package fault

import (
	"errors"
	"net/http"
	"syscall"
)

// signalCaller is not supported here: it needs /proc.
func signalCaller(*http.Request, syscall.Signal) error { return errors.New("signal: only on Linux") }
