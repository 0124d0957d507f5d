package awsfake

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3 holds objects by "bucket/key".
type S3 struct {
	*Calls
	Objects map[string]string
	// Owner is the account that owns the buckets. Empty means Account.
	Owner string
}

// GetObject refuses if another account owns the bucket than is expected.
func (s *S3) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	name := *in.Bucket + "/" + *in.Key
	if err := s.call("S3.GetObject", name); err != nil {
		return nil, err
	}
	if owner := cmp.Or(s.Owner, Account); in.ExpectedBucketOwner != nil && *in.ExpectedBucketOwner != owner {
		return nil, refuse("AccessDenied", "Access Denied")
	}
	text, ok := s.Objects[name]
	if !ok {
		return nil, &types.NoSuchKey{}
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(strings.NewReader(text))}, nil
}

// put is PutObject as it arrives over HTTP.
func (s *S3) put(name, text string) error {
	if err := s.call("S3.PutObject", name); err != nil {
		return err
	}
	s.Objects[name] = text
	return nil
}
