package k8s

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Clusters is what connecting needs of EKS.
type Clusters interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
}

// Connector opens the cluster that a plan is about; steps take one, because the cluster is only known with the plan.
type Connector func(ctx context.Context, cluster plan.Cluster) (*Client, error)

// Dial is the Connector that uses the caller's AWS credentials. Where a cluster's API server is, and by which authority it is known,
// it asks EKS each time: a plan comes out of a table, and must not say where the caller's token is sent.
func Dial(config aws.Config, clusters Clusters) Connector {
	return func(ctx context.Context, cluster plan.Cluster) (*Client, error) {
		found, err := known(ctx, clusters, cluster)
		if err != nil {
			return nil, err
		}
		return connect(ctx, config, cluster.Name, found)
	}
}

// ErrGone is the error of a Connector where the cluster has been deleted.
var ErrGone = errors.New("EKS has no cluster of this name in this account and region any more; the next pass tells what to do")

// known is what EKS says of the cluster that a plan is about.
func known(ctx context.Context, clusters Clusters, cluster plan.Cluster) (*types.Cluster, error) {
	out, err := clusters.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &cluster.Name})
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return nil, fmt.Errorf("cluster %s: %w", cluster.Name, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: describe: %w", cluster.Name, err)
	}
	if arn := aws.ToString(out.Cluster.Arn); arn != cluster.ARN {
		return nil, fmt.Errorf("cluster %s: EKS says that its ARN is %s, and the plan is about %s; send a full Rack Reconcile Requested, which makes a new plan", cluster.Name, arn, cluster.ARN)
	}
	if aws.ToString(out.Cluster.Endpoint) == "" {
		return nil, fmt.Errorf("cluster %s: it is %s and has no API server yet; the next pass goes on once it is ACTIVE", cluster.Name, out.Cluster.Status)
	}
	return out.Cluster, nil
}

// connect makes a client with a fresh token; it sends no request.
func connect(ctx context.Context, config aws.Config, name string, cluster *types.Cluster) (*Client, error) {
	var ca []byte
	if cluster.CertificateAuthority != nil {
		var err error
		if ca, err = base64.StdEncoding.DecodeString(aws.ToString(cluster.CertificateAuthority.Data)); err != nil {
			return nil, fmt.Errorf("cluster %s: certificate authority: %w", name, err)
		}
	}
	token, err := Token(ctx, config, name)
	if err != nil {
		return nil, err
	}
	rest := &rest.Config{Host: *cluster.Endpoint, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	rest.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport{next, name, requestTimeout, new(atomic.Int32)}
	})
	return New(rest)
}
