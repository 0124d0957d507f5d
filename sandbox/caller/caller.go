// Package caller finds the owner of an access key.
package caller

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// ARN asks MiniStack for the ARN of a key's owner. It is empty if the key is unknown.
func ARN(ministack *url.URL, accessKey string) (string, error) {
	if accessKey == "" {
		return "", nil
	}
	u := ministack.JoinPath("/_sandbox/caller")
	u.RawQuery = url.Values{"accessKeyId": {accessKey}}.Encode()
	var who struct{ ARN string }
	if err := ask.JSON(context.Background(), http.MethodGet, u.String(), nil, &who); err != nil {
		return "", fmt.Errorf("caller %s: %w", accessKey, err)
	}
	return who.ARN, nil
}

// Functions identifies the Lambda functions among the callers, and Karpenter. A function's session has the function's name.
type Functions struct {
	MiniStack *url.URL
	// Prefix is the prefix of the functions' names. Of removes it.
	Prefix string

	known sync.Map
}

// Of returns the name of the function that uses the key, fault.Karpenter for the role of a rack's controller; empty if the key
// belongs to neither.
func (f *Functions) Of(accessKey string) string {
	if name, ok := f.known.Load(accessKey); ok {
		return name.(string)
	}
	arn, err := ARN(f.MiniStack, accessKey)
	if err != nil || arn == "" {
		return ""
	}
	name := ""
	if parts := strings.Split(arn, "/"); strings.Contains(parts[0], ":assumed-role") && len(parts) == 3 {
		if rest, ours := strings.CutPrefix(parts[2], f.Prefix); ours {
			name = rest
		} else if strings.HasSuffix(parts[1], "-karpenter") {
			name = fault.Karpenter
		}
	}
	f.known.Store(accessKey, name)
	return name
}
