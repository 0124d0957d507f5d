package authenticator

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	prefix = "k8s-aws-v1."
	// clusterHeader carries the cluster's name in the signed request, so that a token is valid for one cluster only.
	clusterHeader = "x-k8s-aws-id"
	// validity is how long EKS accepts a token, whatever X-Amz-Expires is (the AWS CLI sets 60 seconds, and kubectl
	// keeps the token for 14 minutes). It is also the largest X-Amz-Expires that EKS accepts.
	validity = 15 * time.Minute
	// ahead is how far the signer's clock may be ahead of ours.
	ahead = 5 * time.Minute
)

// parameters are the query parameters that a token may have. EKS rejects any other.
var parameters = []string{
	"action", "version", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-security-token",
	"x-amz-signature", "x-amz-signedheaders", "x-amz-user-agent",
}

// token is a presigned GetCallerIdentity request. Its form has been checked, but not its signature.
type token struct {
	url       *url.URL
	accessKey string
}

// decode parses a bearer token. hosts are the host names of the sandbox's STS, in addition to AWS's own.
func decode(text string, hosts []string, now time.Time) (token, error) {
	encoded, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return token{}, fmt.Errorf("it does not begin with %q", prefix)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil {
		return token{}, fmt.Errorf("it is not base64url: %w", err)
	}
	presigned, err := url.Parse(string(raw))
	if err != nil {
		return token{}, fmt.Errorf("it does not hold a URL: %w", err)
	}
	if err := checkAddress(presigned, hosts); err != nil {
		return token{}, err
	}
	query, err := readQuery(presigned)
	if err != nil {
		return token{}, err
	}
	if err := checkQuery(query, now); err != nil {
		return token{}, err
	}
	accessKey, _, _ := strings.Cut(query["x-amz-credential"], "/")
	return token{presigned, accessKey}, nil
}

// checkAddress accepts the regional STS endpoints with https, and the sandbox's gateway with http.
func checkAddress(u *url.URL, hosts []string) error {
	regional := strings.HasPrefix(u.Host, "sts.") && strings.HasSuffix(u.Host, ".amazonaws.com") && strings.Count(u.Host, ".") <= 3
	switch {
	case regional && u.Scheme != "https":
		return fmt.Errorf("scheme %q is not https", u.Scheme)
	case !regional && !slices.Contains(hosts, u.Host):
		return fmt.Errorf("host %q is not an STS endpoint", u.Host)
	case !regional && u.Scheme != "http":
		return fmt.Errorf("scheme %q is not http, which the sandbox speaks", u.Scheme)
	case u.Path != "" && u.Path != "/":
		return fmt.Errorf("path %q is not /", u.Path)
	case u.User != nil || u.Fragment != "":
		return errors.New("its URL has a user or a fragment")
	}
	return nil
}

// readQuery returns the parameters by lower-case name.
func readQuery(u *url.URL) (map[string]string, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("query: parse: %w", err)
	}
	query := map[string]string{}
	for name, given := range values {
		name = strings.ToLower(name)
		if !slices.Contains(parameters, name) {
			return nil, fmt.Errorf("query parameter %q is not allowed", name)
		}
		if _, twice := query[name]; twice || len(given) != 1 {
			return nil, fmt.Errorf("query parameter %q is given twice", name)
		}
		query[name] = given[0]
	}
	return query, nil
}

func checkQuery(query map[string]string, now time.Time) error {
	if query["action"] != "GetCallerIdentity" {
		return fmt.Errorf("action %q is not GetCallerIdentity", query["action"])
	}
	signed := strings.Split(strings.ToLower(query["x-amz-signedheaders"]), ";")
	for _, header := range []string{"host", clusterHeader} {
		if !slices.Contains(signed, header) {
			return fmt.Errorf("header %s is not signed", header)
		}
	}
	expires, err := strconv.Atoi(query["x-amz-expires"])
	if err != nil || expires < 0 || expires > int(validity.Seconds()) {
		return fmt.Errorf("X-Amz-Expires %q is not a number of seconds from 0 to %.0f", query["x-amz-expires"], validity.Seconds())
	}
	date, err := time.Parse("20060102T150405Z", query["x-amz-date"])
	if err != nil {
		return fmt.Errorf("X-Amz-Date: parse: %w", err)
	}
	if age := now.Sub(date); age > validity || age < -ahead {
		return fmt.Errorf("X-Amz-Date %s: it has expired or lies in the future", query["x-amz-date"])
	}
	return nil
}
