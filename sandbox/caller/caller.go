// Package caller tells whose an access key is.
package caller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// ARN asks MiniStack for the ARN of a key's owner; it is empty where nobody owns the key.
func ARN(ministack *url.URL, accessKey string) (string, error) {
	if accessKey == "" {
		return "", nil
	}
	u := ministack.JoinPath("/_sandbox/caller")
	u.RawQuery = url.Values{"accessKeyId": {accessKey}}.Encode()
	resp, err := http.Get(u.String())
	if err != nil {
		return "", fmt.Errorf("caller %s: ask MiniStack: %w", accessKey, err)
	}
	defer resp.Body.Close()
	var who struct{ ARN string }
	if err := json.NewDecoder(resp.Body).Decode(&who); err != nil {
		return "", fmt.Errorf("caller %s: read answer: %w", accessKey, err)
	}
	return who.ARN, nil
}

// Functions knows the Lambda functions among the callers. A function's session bears its name.
type Functions struct {
	MiniStack *url.URL
	// Prefix begins the names of the functions; it is left out.
	Prefix string

	known sync.Map
}

// Of is the name of the function that has the key; it is empty where the key is not a function's.
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
		}
	}
	f.known.Store(accessKey, name)
	return name
}
