package k8s

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	tokenPrefix   = "k8s-aws-v1."
	clusterHeader = "x-k8s-aws-id"
	// tokenSeconds is how long the presigned URL may be used; aws-iam-authenticator's own clients say 60, and EKS lets the
	// token itself live for 15 minutes, longer than any Lambda of ours.
	tokenSeconds = "60"
)

// Token makes the bearer token that EKS's API servers take: a presigned STS GetCallerIdentity URL with the cluster's name
// as a signed header. Nothing is called: whether the token is good, the API server says.
func Token(ctx context.Context, config aws.Config, cluster string) (string, error) {
	client := sts.NewPresignClient(sts.NewFromConfig(config))
	request, err := client.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
			smithyhttp.SetHeaderValue(clusterHeader, cluster),
			// The signer moves this one into the query.
			smithyhttp.SetHeaderValue("X-Amz-Expires", tokenSeconds),
		))
	})
	if err != nil {
		return "", fmt.Errorf("cluster %s: token: %w", cluster, err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(request.URL)), nil
}
