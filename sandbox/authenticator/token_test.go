package authenticator

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"
)

const gatewayHost = "127.0.0.1:4566"

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// presigned returns the URL of a valid token. changes replace parts of it before it is encoded.
func presigned(changes ...string) string {
	text := "http://" + gatewayHost + "/?" + url.Values{
		"Action":               {"GetCallerIdentity"},
		"Version":              {"2011-06-15"},
		"X-Amz-Algorithm":      {"AWS4-HMAC-SHA256"},
		"X-Amz-Credential":     {"ASIAEXAMPLE/20260501/us-east-1/sts/aws4_request"},
		"X-Amz-Date":           {now.Add(-time.Minute).Format("20060102T150405Z")},
		"X-Amz-Expires":        {"60"},
		"X-Amz-Security-Token": {"session"},
		"X-Amz-SignedHeaders":  {"host;x-k8s-aws-id"},
		"X-Amz-Signature":      {"00ff"},
	}.Encode()
	return strings.NewReplacer(changes...).Replace(text)
}

func encode(u string) string { return prefix + base64.RawURLEncoding.EncodeToString([]byte(u)) }

func TestDecodeAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"the gateway":     encode(presigned()),
		"AWS":             encode(presigned("http://"+gatewayHost, "https://sts.us-east-1.amazonaws.com")),
		"the global STS":  encode(presigned("http://"+gatewayHost, "https://sts.amazonaws.com")),
		"padding":         encode(presigned()) + "=",
		"an old token":    encode(presigned("115900", "114530")),
		"the longest":     encode(presigned("Expires=60", "Expires=900")),
		"lower-case name": encode(presigned("X-Amz-Expires", "x-amz-expires")),
	} {
		got, err := decode(text, []string{gatewayHost}, now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got.accessKey != "ASIAEXAMPLE" {
			t.Errorf("%s: access key %q", name, got.accessKey)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for want, text := range map[string]string{
		"does not begin with":          strings.TrimPrefix(encode(presigned()), prefix),
		"is not base64url":             prefix + "?",
		"is not an STS endpoint":       encode(presigned(gatewayHost, "127.0.0.1:1")),
		`"sts.us-east-1.example.com"`:  encode(presigned("http://"+gatewayHost, "https://sts.us-east-1.example.com")),
		`"sts.x.evil.amazonaws.com"`:   encode(presigned("http://"+gatewayHost, "https://sts.x.evil.amazonaws.com")),
		`scheme "http" is not https`:   encode(presigned(gatewayHost, "sts.us-east-1.amazonaws.com")),
		`scheme "https" is not http,`:  encode(presigned("http:", "https:")),
		`path "/x" is not /`:           encode(presigned("/?", "/x?")),
		"has a user":                   encode(presigned("http://", "http://me@")),
		`parameter "role" is not`:      encode(presigned() + "&Role=x"),
		`"action" is given twice`:      encode(presigned() + "&action=GetCallerIdentity"),
		`"AssumeRole" is not`:          encode(presigned("GetCallerIdentity", "AssumeRole")),
		"x-k8s-aws-id is not signed":   encode(presigned("%3Bx-k8s-aws-id", "")),
		"host is not signed":           encode(presigned("host%3B", "")),
		`X-Amz-Expires "901"`:          encode(presigned("Expires=60", "Expires=901")),
		`X-Amz-Expires ""`:             encode(presigned("X-Amz-Expires=60&", "")),
		"X-Amz-Date: parse":            encode(presigned("115900Z", "115900")),
		"20260501T114459Z: it has exp": encode(presigned("115900", "114459")),
		"20260501T120501Z: it has exp": encode(presigned("115900", "120501")),
	} {
		if _, err := decode(text, []string{gatewayHost}, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal with %q, got %v", want, err)
		}
	}
}
