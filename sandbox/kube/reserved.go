package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reservationLabel is the label with which Karpenter names the capacity reservation of a NodeClaim.
const reservationLabel = "karpenter.k8s.aws/capacity-reservation-id"

// Reserved returns how many NodeClaims were launched into each capacity reservation.
func (c *Cluster) Reserved(ctx context.Context) (map[string]int, error) {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{c.etcd()}, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("etcd: connect: %w", err)
	}
	defer etcd.Close()
	found, err := etcd.Get(ctx, nodeClaims, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("etcd: list %s: %w", nodeClaims, err)
	}
	used := map[string]int{}
	for _, record := range found.Kvs {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(record.Value, &object); err != nil {
			return nil, fmt.Errorf("etcd: decode %s: %w", record.Key, err)
		}
		if id := object.Labels[reservationLabel]; id != "" {
			used[id]++
		}
	}
	return used, nil
}
