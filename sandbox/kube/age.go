package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// nodeClaims is where the API server keeps the NodeClaims in etcd, as JSON.
const nodeClaims = "/registry/karpenter.sh/nodeclaims/"

// Age makes all NodeClaims older, as if the time had passed, to Karpenter too. It writes etcd's records, because the API server lets nobody
// set the time at which an object was created.
func (c *Cluster) Age(ctx context.Context, by time.Duration) error {
	return c.eachNodeClaim(ctx, func(etcd *clientv3.Client, key string, _ []byte) error {
		for {
			if aged, err := age(ctx, etcd, key, by); aged || err != nil {
				return err
			}
		}
	})
}

// eachNodeClaim calls a function with the record of each NodeClaim.
func (c *Cluster) eachNodeClaim(ctx context.Context, do func(etcd *clientv3.Client, key string, value []byte) error) error {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{c.etcd()}, DialTimeout: 5 * time.Second})
	if err != nil {
		return fmt.Errorf("etcd: connect: %w", err)
	}
	defer etcd.Close()
	found, err := etcd.Get(ctx, nodeClaims, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("etcd: list %s: %w", nodeClaims, err)
	}
	for _, record := range found.Kvs {
		if err := do(etcd, string(record.Key), record.Value); err != nil {
			return fmt.Errorf("etcd: %s: %w", record.Key, err)
		}
	}
	return nil
}

// age reports false if the object was written meanwhile.
func age(ctx context.Context, etcd *clientv3.Client, key string, by time.Duration) (aged bool, err error) {
	found, err := etcd.Get(ctx, key)
	if err != nil || len(found.Kvs) == 0 {
		return err == nil, err // deleted meanwhile
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(found.Kvs[0].Value, &object.Object); err != nil {
		return false, err
	}
	object.SetCreationTimestamp(metav1.NewTime(object.GetCreationTimestamp().Add(-by)))
	value, err := json.Marshal(object.Object)
	if err != nil {
		return false, err
	}
	answer, err := etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", found.Kvs[0].ModRevision)).
		Then(clientv3.OpPut(key, string(value))).Commit()
	if err != nil {
		return false, err
	}
	return answer.Succeeded, nil
}
