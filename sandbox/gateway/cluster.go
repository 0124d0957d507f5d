package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
)

var clusterPath = regexp.MustCompile(`^/clusters(/[^/]+)?$`)

// amendCluster adds to EKS's answers about a cluster what MiniStack cannot know: the real API server, and the VPC and
// cluster security group in moto.
func (g *gateway) amendCluster(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK || !clusterPath.MatchString(resp.Request.URL.Path) {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("cluster: read MiniStack's answer: %w", err)
	}
	resp.Body.Close()
	if amended, err := g.amend(resp.Request, body); err != nil {
		return err
	} else if amended != nil {
		body = amended
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// amend returns nil if the answer is not about one cluster (ListClusters).
func (g *gateway) amend(req *http.Request, body []byte) ([]byte, error) {
	var answer struct {
		Cluster map[string]any `json:"cluster"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Cluster == nil {
		return nil, nil
	}
	name, _ := answer.Cluster["name"].(string)
	vpc, _ := answer.Cluster["resourcesVpcConfig"].(map[string]any)
	if subnets, _ := vpc["subnetIds"].([]any); len(subnets) > 0 {
		n, err := g.networks.of(req.Context(), name, fmt.Sprint(subnets[0]))
		if err != nil {
			return nil, fmt.Errorf("cluster %s: network: %w", name, err)
		}
		vpc["vpcId"], vpc["clusterSecurityGroupId"] = n.vpc, n.securityGroup
	}
	if g.cfg.Cluster != nil {
		c := g.cfg.Cluster(name)
		answer.Cluster["endpoint"] = c.Endpoint
		answer.Cluster["certificateAuthority"] = map[string]any{"data": base64.StdEncoding.EncodeToString(c.CA)}
		if c.OIDCIssuer != "" {
			answer.Cluster["identity"] = map[string]any{"oidc": map[string]any{"issuer": c.OIDCIssuer}}
		}
	}
	return json.Marshal(answer)
}
