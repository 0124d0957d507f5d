package validate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Objects is the part of S3's API that reading JSON parameters needs.
type Objects interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// maxObject is the maximum size of an object in bytes. It is enough for JSON of the allowed size in base64 with line
// breaks.
const maxObject = 2 * params.MaxJSON

// maxKey is S3's limit for an object's key in bytes.
const maxKey = 1024

// objects reads the objects that the s3:// values name. An object that cannot be read for a lasting reason has a
// Problem for the user. Any other failure is returned as an error.
func (v *Validate) objects(ctx context.Context, rack string, texts map[string]string) (map[string]params.Object, error) {
	found := map[string]params.Object{}
	for _, uri := range params.ObjectURIs(texts) {
		object, err := v.object(ctx, rack, uri)
		if err != nil {
			return nil, fmt.Errorf("%s: read: %w", uri, err)
		}
		found[uri] = object
	}
	return found, nil
}

// digest identifies the text of an object.
func digest(object params.Object) string {
	sum := canonical.Hash(object.Text)
	return hex.EncodeToString(sum[:8])
}

func (v *Validate) object(ctx context.Context, rack, uri string) (params.Object, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(uri, "s3://"), "/")
	if !params.IsObjectURI(uri) {
		return params.Object{Problem: "which is no object in S3; write, for example, s3://my-bucket/sawhorse/pools.json"}, nil
	}
	if len(key) > maxKey {
		return params.Object{
			Problem: fmt.Sprintf("which has a key of %d bytes; S3 allows at most %d; give the object a shorter one", len(key), maxKey),
		}, nil
	}
	if prefixes := v.Observer.Deployment.ObjectsOf(rack); !below(uri, prefixes) {
		allowed := "none; deploy the stack with the context value objectPrefixes"
		if len(prefixes) > 0 {
			allowed = strings.Join(prefixes, ", ")
		}
		return params.Object{
			Problem: "which is not below a prefix that the stack allows (" + allowed + "); put it there, or give the JSON itself",
		}, nil
	}
	out, err := v.get(ctx, bucket, key)
	switch outcome.Code(err) {
	case "NoSuchKey", "NoSuchBucket":
		return params.Object{Problem: "which does not exist; upload it first, or give the JSON itself"}, nil
	case accessDenied:
		return params.Object{Problem: "which does not exist, or which the function validate may not read; " +
			"look at the bucket's policy (s3:GetObject) and that of its encryption key (kms:Decrypt), and whether it is a bucket of " +
			strings.Join(v.Observer.Deployment.ObjectOwners, ", ") +
			" (those of other accounts are read where the stack has the context value objectAccounts)"}, nil
	}
	if lasts(err) {
		return params.Object{Problem: fmt.Sprintf("which S3 does not give out (%s); look at the object's storage class and encryption, and "+
			"whether its bucket is in the stack's region; upload it again, or give the JSON itself", outcome.Code(err))}, nil
	}
	if err != nil {
		return params.Object{}, err
	}
	defer out.Body.Close()
	text, err := io.ReadAll(io.LimitReader(out.Body, maxObject+1))
	if err != nil {
		return params.Object{}, err
	}
	if len(text) > maxObject {
		return params.Object{
			Problem: fmt.Sprintf("which has more than %d bytes; %d bytes of JSON are allowed; take something out", maxObject, params.MaxJSON),
		}, nil
	}
	return params.Object{Text: string(text)}, nil
}

// credentialCodes are S3's codes for what is wrong with the function's credentials or clock, which the next call may have put right.
var credentialCodes = map[string]bool{
	"ExpiredToken": true, "InvalidAccessKeyId": true, "InvalidToken": true, "RequestExpired": true, "RequestTimeTooSkewed": true,
	"SignatureDoesNotMatch": true, "TokenRefreshRequired": true,
}

// lasts reports whether S3 refuses an object until somebody does something about it: an answer that blames the request, or that sends it
// to another region, and that neither asks for patience nor is about the function itself. S3 hands on what KMS answers.
func lasts(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	blames := api.ErrorFault() == smithy.FaultClient
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		status := answer.HTTPStatusCode()
		blames = status == http.StatusMovedPermanently ||
			status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
	}
	code := strings.TrimPrefix(api.ErrorCode(), "KMS.")
	_, throttles := retry.DefaultThrottleErrorCodes[code]
	again := retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
	return blames && !throttles && !credentialCodes[code] && !again
}

// below reports whether an object is below one of the prefixes. The parts . and .. may be in S3's keys, but whoever is on
// the way to S3 may resolve them, and then they lead to another rack's objects.
func below(uri string, prefixes []string) bool {
	climbs := func(part string) bool { return part == "." || part == ".." }
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(uri, prefix) }) &&
		!slices.ContainsFunc(strings.Split(uri, "/"), climbs)
}

// accessDenied is S3's error code for a bucket whose owner is not the expected one. It also has other causes.
const accessDenied = "AccessDenied"

// get reads an object of a bucket that belongs to one of the allowed owners. A call can name one expected owner, so get
// tries them one after the other.
func (v *Validate) get(ctx context.Context, bucket, key string) (out *s3.GetObjectOutput, err error) {
	err = errors.New("the function's environment names no account whose buckets may be read; deploy the stack again")
	for _, owner := range v.Observer.Deployment.ObjectOwners {
		out, err = v.S3.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key, ExpectedBucketOwner: &owner})
		if outcome.Code(err) != accessDenied {
			return out, err
		}
	}
	return nil, err
}
