//go:build !linux

package fault

import (
	"errors"
	"net/http"
)

// killCaller needs /proc.
func killCaller(*http.Request) error { return errors.New("kill: only on Linux") }
