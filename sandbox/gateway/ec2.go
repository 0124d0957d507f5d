package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// authorized is what MiniStack's wrapper marks an EC2 call with that the caller's policies allow.
const authorized = "X-Sandbox-Authorized"

// resourceTags has, as JSON, what policies can know of the tags of the instances that a call ends: moto has them, MiniStack
// judges by them.
const resourceTags = "X-Sandbox-Resource-Tags"

// serveEC2 lets MiniStack check signature and policies, which moto does not, and moto do the work.
func (g *gateway) serveEC2(w http.ResponseWriter, req *http.Request, action string) {
	body, err := buffer(req)
	if err != nil {
		http.Error(w, "gateway: read an ec2 call: "+err.Error(), http.StatusBadRequest)
		return
	}
	check := req.Clone(req.Context())
	check.URL.Scheme, check.URL.Host = g.cfg.MiniStack.Scheme, g.cfg.MiniStack.Host
	check.RequestURI, check.Body = "", io.NopCloser(bytes.NewReader(body))
	address(check, req)
	if check.Header.Del(resourceTags); action == "TerminateInstances" {
		tags, err := g.sharedTags(req.Context(), body)
		if err != nil {
			http.Error(w, "gateway: authorize an ec2 call: "+err.Error(), http.StatusBadGateway)
			return
		}
		check.Header.Set(resourceTags, tags)
	}
	resp, err := g.transport.RoundTrip(check)
	if err != nil {
		http.Error(w, "gateway: authorize an ec2 call: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	if resp.Header.Get(authorized) == "" {
		for _, name := range []string{"Content-Type", "X-Amzn-Requestid"} {
			w.Header().Set(name, resp.Header.Get(name))
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // the caller has gone: nobody is left to tell
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	if catalogued[action] {
		g.serveCatalogue(w, req, body)
		return
	}
	g.moto.ServeHTTP(w, req)
}

// sharedTags are the tags that all instances of a call have. EC2 judges each instance by its own, and ends all or none: what a
// policy demands of tags must hold for each.
func (g *gateway) sharedTags(ctx context.Context, body []byte) (string, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	var ids []string
	for name, values := range form {
		if strings.HasPrefix(name, "InstanceId.") {
			ids = append(ids, values...)
		}
	}
	found, err := g.networks.ec2.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{{Name: new("resource-id"), Values: ids}}})
	if err != nil {
		return "", fmt.Errorf("tags of %s: describe: %w", strings.Join(ids, ", "), err)
	}
	holders, values := map[string]int{}, map[string]string{}
	for _, tag := range found.Tags {
		if value, seen := values[*tag.Key]; !seen || value == *tag.Value {
			values[*tag.Key] = *tag.Value
			holders[*tag.Key]++
		}
	}
	shared := map[string]string{}
	for key, n := range holders {
		if n == len(ids) {
			shared[key] = values[key]
		}
	}
	text, err := json.Marshal(shared)
	return string(text), err
}
