package k8s

import (
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Foreign is the error of an object that has a name of ours and is not ours. Nothing was written.
type Foreign struct {
	// Subject is Kind/namespace/name.
	Subject string
	// Owner is the rack whose label it carries; empty where it carries none.
	Owner string
}

func (f *Foreign) Error() string {
	if f.Owner == "" {
		return f.Subject + ": apply: it exists and Sawhorse did not make it"
	}
	return fmt.Sprintf("%s: apply: it belongs to rack %s", f.Subject, f.Owner)
}

// silent tells whether an error says that nobody answered: no address, no connection, or none in time.
func silent(err error) bool {
	var dial *net.OpError
	var timeout net.Error
	return errors.As(err, new(*net.DNSError)) || errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &timeout) && timeout.Timeout()
}

// IsConflict tells whether a write failed because the object changed after it was read: read again and retry.
func IsConflict(err error) bool { return apierrors.IsConflict(err) }

// IsUnauthorized tells whether the API server did not know the caller: no access entry, or one of an earlier role of that name.
func IsUnauthorized(err error) bool { return apierrors.IsUnauthorized(err) }

// IsForbidden tells whether the API server did not allow the caller what it asked for.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }
