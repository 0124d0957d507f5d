package access

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// The functions' access to a cluster, given and taken away within seconds, is never left behind, and the other way round,
// although EKS shows the state before.
func TestTakenBack(t *testing.T) {
	awsfake.TakenBack(t, func() (*awsfake.Cloud, func(bool) (time.Duration, error)) {
		s := begin(t)
		s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
		return s.cloud, func(closed bool) (time.Duration, error) {
			part := ""
			if closed {
				part = "close"
			}
			progress, err := s.step.Run(t.Context(), s.plan, part)
			return progress.Wait, err
		}
	}, func(cloud *awsfake.Cloud) any {
		var all []any
		for _, arn := range slices.Sorted(maps.Keys(cloud.EKS.Entries)) {
			entry := cloud.EKS.Entries[arn]
			all = append(all, arn, *entry.Type, entry.KubernetesGroups, entry.Policies)
		}
		return all
	})
}
