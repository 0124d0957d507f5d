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
	// tokenSeconds is the expiry of the presigned URL. The clients of aws-iam-authenticator use 60 as well. EKS accepts
	// the token for 15 minutes, which is longer than any function runs.
	tokenSeconds = "60"
)

// Token makes a bearer token for EKS's API servers: a presigned STS GetCallerIdentity URL with the cluster's name as a
// signed header. It sends no request, so only the API server can tell whether the token is valid.
func Token(ctx context.Context, config aws.Config, cluster string) (string, error) {
	client := sts.NewPresignClient(sts.NewFromConfig(config))
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
