package k8s

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Serves reports whether the API server serves an API, such as "monitoring.coreos.com/v1". Every authenticated user may ask.
func (c *Client) Serves(ctx context.Context, api string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.config.Host, "/")+"/apis/"+api, nil)
	if err != nil {
		return false, fmt.Errorf("API %s: %w", api, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, fmt.Errorf("API %s: %w", api, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusNotFound:
		return false, nil
	}
	return false, fmt.Errorf("API %s: the API server answered %s", api, response.Status)
}
