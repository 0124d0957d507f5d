package k8s

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// unreachable is an AWS without a way to it, as from a VPC that has no endpoint of STS.
type unreachable struct{}

func (unreachable) Do(*http.Request) (*http.Response, error) {
	return nil, errors.New("a token needs no call")
}

func decodeToken(t *testing.T, config aws.Config) *url.URL {
	t.Helper()
	config.HTTPClient = unreachable{}
	token, err := Token(context.Background(), config, "demo")
	if err != nil {
		t.Fatal(err)
	}
	encoded, ok := strings.CutPrefix(token, "k8s-aws-v1.")
	if !ok || strings.ContainsAny(encoded, "=+/") {
		t.Fatalf("not an EKS token: %s", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// EKS's authenticator checks the regional STS host, the action, the signed cluster header and the expiry of a token,
// and refuses unknown parameters.
func TestTokenIsWhatTheAuthenticatorTakes(t *testing.T) {
	u := decodeToken(t, aws.Config{
		Region: "eu-north-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "session"),
	})
	if u.Scheme != "https" || u.Host != "sts.eu-north-1.amazonaws.com" || u.Path != "/" {
		t.Errorf("the URL is %s://%s%s", u.Scheme, u.Host, u.Path)
	}
	query := u.Query()
	for key, want := range map[string]string{"Action": "GetCallerIdentity", "X-Amz-Expires": "60", "X-Amz-Security-Token": "session"} {
		if got := query.Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if !slices.Contains(strings.Split(query.Get("X-Amz-SignedHeaders"), ";"), "x-k8s-aws-id") {
		t.Errorf("x-k8s-aws-id is not signed: %s", query.Get("X-Amz-SignedHeaders"))
	}
	if scope := query.Get("X-Amz-Credential"); !strings.Contains(scope, "/eu-north-1/sts/") {
		t.Errorf("the credential scope is %s", scope)
	}
	known := []string{
		"action", "version", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-security-token",
		"x-amz-signature", "x-amz-signedheaders",
	}
	for key := range query {
		if !slices.Contains(known, strings.ToLower(key)) {
			t.Errorf("the authenticator refuses the parameter %s", key)
		}
	}
}

// The variables are those of the stack's context fips and dualStack.
func TestTokenHasThePlainHostWithFIPSAndDualStack(t *testing.T) {
	t.Setenv("AWS_USE_FIPS_ENDPOINT", "true")
	t.Setenv("AWS_USE_DUALSTACK_ENDPOINT", "true")
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("us-east-1"),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("AKID", "secret", "")))
	if err != nil {
		t.Fatal(err)
	}
	if u := decodeToken(t, loaded); u.Host != "sts.us-east-1.amazonaws.com" {
		t.Errorf("the URL's host is %s", u.Host)
	}
}

func TestTokenFollowsTheEndpointOfTheSDK(t *testing.T) {
	config := aws.Config{
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""), BaseEndpoint: aws.String("http://127.0.0.1:4566"),
	}
	if u := decodeToken(t, config); u.Host != "127.0.0.1:4566" || u.Scheme != "http" {
		t.Errorf("the URL is %s://%s", u.Scheme, u.Host)
	}
}
