package network

import (
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A subnet that is chosen, and not chosen any more within seconds, does not keep the tag, and the other way round,
// although EC2 shows the state before.
func TestTakenBack(t *testing.T) {
	awsfake.TakenBack(t, func() (*awsfake.Cloud, func(bool) (time.Duration, error)) {
		cloud, n := begin()
		return cloud, func(set bool) (time.Duration, error) {
			p := wanted("subnet-a", "subnet-b")
			if set {
				p = wanted("subnet-a", "subnet-c")
			}
			progress, err := n.Run(t.Context(), p, "")
			return progress.Wait, err
		}
	}, func(cloud *awsfake.Cloud) any { return tagged(cloud) })
}
