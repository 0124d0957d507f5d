package authenticator

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// caller is the signer of a token, according to STS.
type caller struct {
	arn, account, id, accessKey string
	// canonical is the ARN in the form of access entries and aws-auth. If arn is that of a session, canonical is that
	// of its role, without the path, which STS does not return.
	canonical string
	role      string // the role's name, if it is one
	session   string // the session's name, if it is one
}

// identify has STS verify the token's signature and identify its signer. The request is sent exactly as it was signed:
// with the signed host and with this cluster's name in the signed header, so that a token for another cluster fails.
func (a *Authenticator) identify(ctx context.Context, t token) (caller, error) {
	target := *t.url
	target.Scheme, target.Host, target.Path = a.config.MiniStack.Scheme, a.config.MiniStack.Host, "/"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return caller{}, fmt.Errorf("STS: make request: %w", err)
	}
	request.Host = t.url.Host
	request.Header.Set(clusterHeader, a.config.Cluster)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return caller{}, fmt.Errorf("STS: ask: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return caller{}, fmt.Errorf("STS: read answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return caller{}, fmt.Errorf("STS: refused with %s: %s", response.Status, firstLine(body))
	}
	c, err := readIdentity(body)
	c.accessKey = t.accessKey
	return c, err
}

func readIdentity(body []byte) (caller, error) {
	var answer struct {
		ARN     string `xml:"GetCallerIdentityResult>Arn"`
		Account string `xml:"GetCallerIdentityResult>Account"`
		ID      string `xml:"GetCallerIdentityResult>UserId"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return caller{}, fmt.Errorf("STS: decode answer: %w", err)
	}
	c := caller{arn: answer.ARN, account: answer.Account, id: answer.ID}
	return c, c.canonicalize()
}

// canonicalize derives role, session and canonical ARN.
func (c *caller) canonicalize() error {
	parsed, err := arn.Parse(c.arn)
	if err != nil {
		return fmt.Errorf("caller %q: parse ARN: %w", c.arn, err)
	}
	kind, rest, _ := strings.Cut(parsed.Resource, "/")
	switch {
	case parsed.Service == "iam" && (parsed.Resource == "root" || kind == "user" || kind == "role"):
		c.canonical = c.arn
	case parsed.Service == "sts" && kind == "assumed-role":
		role, session, ok := strings.Cut(rest, "/")
		if !ok {
			return fmt.Errorf("caller %q: the session has no name", c.arn)
		}
		c.role, c.session = role, session
		c.canonical = fmt.Sprintf("arn:%s:iam::%s:role/%s", parsed.Partition, parsed.AccountID, role)
	default:
		return fmt.Errorf("caller %q: %w", c.arn, errors.New("neither a user nor a role"))
	}
	return nil
}

func firstLine(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	return text[:min(len(text), 300)]
}
