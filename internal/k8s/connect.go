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

// Clusters is the part of EKS's API that connecting needs.
type Clusters interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
}

// Connector connects to the cluster of a plan. Steps take a Connector, because the cluster is only known with the plan.
type Connector func(ctx context.Context, cluster plan.Cluster) (*Client, error)

// Dial returns a Connector that uses the caller's AWS credentials. It asks EKS for the API server's address and
// certificate authority each time, and does not take them from the plan: whoever can write the table could otherwise
// redirect the caller's token.
func Dial(config aws.Config, clusters Clusters) Connector {
	return func(ctx context.Context, cluster plan.Cluster) (*Client, error) {
		found, err := known(ctx, clusters, cluster)
		if err != nil {
			return nil, err
		}
		return connect(ctx, config, cluster.Name, found)
	}
}

// ErrGone is the error of a Connector if the cluster has been deleted.
var ErrGone = errors.New("EKS has no cluster of this name in this account and region any more; the next pass tells what to do")

// known returns EKS's description of the plan's cluster.
func known(ctx context.Context, clusters Clusters, cluster plan.Cluster) (*types.Cluster, error) {
	out, err := clusters.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &cluster.Name})
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return nil, fmt.Errorf("cluster %s: %w", cluster.Name, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: describe: %w", cluster.Name, err)
	}
	if arn := aws.ToString(out.Cluster.Arn); arn != cluster.ARN {
		return nil, fmt.Errorf("cluster %s: EKS says that its ARN is %s, and the plan is about %s; send a full Rack Reconcile Requested, "+
			"which makes a new plan", cluster.Name, arn, cluster.ARN)
	}
	if aws.ToString(out.Cluster.Endpoint) == "" {
		return nil, fmt.Errorf("cluster %s: it is %s and has no API server yet; the next pass goes on once it is ACTIVE", cluster.Name,
			out.Cluster.Status)
	}
	return out.Cluster, nil
}

// connect returns a client with a new token. It sends no request to the API server.
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
