//go:build !linux

package fault

import (
	"errors"
	"net/http"
)

// killCaller is not supported here: it needs /proc.
func killCaller(*http.Request) error { return errors.New("kill: only on Linux") }
