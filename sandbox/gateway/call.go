package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// call identifies the service, the action and the caller of a request.
type call struct {
	Service   string // the signing name, as in the credential scope: "ssm", "eks", "states"
	Action    string
	AccessKey string
}

var credential = regexp.MustCompile(`Credential=([^/,\s]+)/\d+/[^/]+/([^/]+)/aws4_request`)

// identify reads service and caller from the signature. Where the action stands depends on the protocol.
func identify(req *http.Request) (call, error) {
	c := call{Service: "unsigned"}
	scope := req.Header.Get("Authorization")
	if presigned := req.URL.Query().Get("X-Amz-Credential"); presigned != "" {
		scope = "Credential=" + presigned
	}
	if m := credential.FindStringSubmatch(scope); m != nil {
		c.AccessKey, c.Service = m[1], m[2]
	}
	action, err := actionOf(c.Service, req)
	if err != nil {
		return c, fmt.Errorf("gateway: read action of a %s call: %w", c.Service, err)
	}
	c.Action = action
	return c, nil
}

func actionOf(service string, req *http.Request) (string, error) {
	if target := req.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndex(target, ".")+1:], nil
	}
	if action := req.URL.Query().Get("Action"); action != "" {
		return action, nil
	}
	if _, operation, ok := strings.Cut(req.URL.Path, "/operation/"); ok { // Smithy's RPC protocols
		return operation, nil
	}
	if strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		body, err := buffer(req)
		if err != nil {
			return "", err
		}
		form, _ := url.ParseQuery(string(body)) // a partly parsed form is enough to find the action
		return form.Get("Action"), nil
	}
	return restAction(service, req.Method, req.URL.Path), nil
}

// buffer reads the body and leaves it readable.
func buffer(req *http.Request) ([]byte, error) {
	body, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}
