package k8s

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Clusters is the part of EKS's API that connecting needs.
type Clusters interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
}

// Connector connects to the cluster of a plan. Steps take a Connector, because the cluster is only known with the plan.
type Connector func(ctx context.Context, cluster plan.Cluster) (*Client, error)

// Dial returns a Connector that uses the caller's AWS credentials. It asks EKS for the API server's address and certificate
// authority, unless the cluster is what EKS has just answered: a stored plan does not have them.
func Dial(config aws.Config, clusters Clusters) Connector {
	return func(ctx context.Context, cluster plan.Cluster) (*Client, error) {
		if cluster.Endpoint == "" {
			found, err := known(ctx, clusters, cluster)
			if err != nil {
				return nil, err
			}
			cluster.Endpoint = *found.Endpoint
			if found.CertificateAuthority != nil {
				cluster.CA = aws.ToString(found.CertificateAuthority.Data)
			}
		}
		return connect(ctx, config, cluster)
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
func connect(ctx context.Context, config aws.Config, cluster plan.Cluster) (*Client, error) {
	ca, err := base64.StdEncoding.DecodeString(cluster.CA)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: certificate authority: %w", cluster.Name, err)
	}
	token, err := Token(ctx, config, cluster.Name)
	if err != nil {
		return nil, err
	}
	return New(cluster.Name, &rest.Config{Host: cluster.Endpoint, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
}

const (
	tokenPrefix   = "k8s-aws-v1."
	clusterHeader = "x-k8s-aws-id"
	// tokenSeconds is the expiry of the presigned URL. The clients of aws-iam-authenticator use 60 as well. EKS accepts
	// the token for 15 minutes, which is longer than any function runs.
	tokenSeconds = "60"
)

// Token makes a bearer token for EKS's API servers: a presigned STS GetCallerIdentity URL with the cluster's name as a
// signed header. It sends no request, so only the API server can tell whether the token is valid. The host is always STS's
// plain one of the region, because the API server's authenticator does not know every other one (aws-iam-authenticator,
// pkg/token, stsHostsForPartition).
func Token(ctx context.Context, config aws.Config, cluster string) (string, error) {
	client := sts.NewPresignClient(sts.NewFromConfig(config, func(o *sts.Options) {
		o.EndpointOptions.UseFIPSEndpoint, o.EndpointOptions.UseDualStackEndpoint =
			aws.FIPSEndpointStateDisabled, aws.DualStackEndpointStateDisabled
	}))
	request, err := client.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
			smithyhttp.SetHeaderValue(clusterHeader, cluster),
			// The signer moves this header into the query.
			smithyhttp.SetHeaderValue("X-Amz-Expires", tokenSeconds),
		))
	})
	if err != nil {
		return "", fmt.Errorf("cluster %s: token: %w", cluster, err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(request.URL)), nil
}
