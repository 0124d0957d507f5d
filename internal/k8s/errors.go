package k8s

import (
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Unmanaged is the error for an object that has a name Sawhorse uses but was not made by it for the rack. Nothing was
// written.
type Unmanaged struct {
	// Subject is Kind/namespace/name.
	Subject string
	// Owner is the rack in the object's label, or empty.
	Owner string
}

func (f *Unmanaged) Error() string {
	if f.Owner == "" {
		return f.Subject + ": apply: it exists and Sawhorse did not make it"
	}
	return fmt.Sprintf("%s: apply: it belongs to rack %s", f.Subject, f.Owner)
}

// silent reports whether an error means that there was no answer: no address, no connection, or a timeout.
func silent(err error) bool {
	var dial *net.OpError
	var timeout net.Error
	return errors.As(err, new(*net.DNSError)) || errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &timeout) && timeout.Timeout()
}

// IsConflict reports whether a write failed because the object changed since it was read. Read it again and retry.
func IsConflict(err error) bool { return apierrors.IsConflict(err) }

// Again makes a conflict, a write of somebody else between our read and ours, a wait.
func Again(err error, poll time.Duration) error {
	if IsConflict(err) {
		return outcome.Wait(poll, "%v", err)
	}
	return err
}

// IsForbidden reports whether the API server did not permit the request.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }
