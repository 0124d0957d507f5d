package kube

import (
	"context"
	"encoding/json"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reservationLabel is the label with which Karpenter names the capacity reservation of a NodeClaim.
const reservationLabel = "karpenter.k8s.aws/capacity-reservation-id"

// Reserved returns how many NodeClaims were launched into each capacity reservation.
func (c *Cluster) Reserved(ctx context.Context) (map[string]int, error) {
	used := map[string]int{}
	err := c.eachNodeClaim(ctx, func(_ *clientv3.Client, _ string, value []byte) error {
		var object metav1.PartialObjectMetadata
		err := json.Unmarshal(value, &object)
		if id := object.Labels[reservationLabel]; id != "" {
			used[id]++
		}
		return err
	})
	return used, err
}
