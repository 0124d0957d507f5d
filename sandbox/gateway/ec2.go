package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// authorized is what MiniStack's wrapper marks an EC2 call with that the caller's policies allow.
const authorized = "X-Sandbox-Authorized"

// lags marks those whose caller does not see at once what is written (ministack/lag.py).
const lags = "X-Sandbox-Lags"

// resourceTags has, as JSON, what policies can know of the tags of the instances that a call ends, or of the subnets that it launches
// into: moto has them, MiniStack judges by them.
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
	check.Header.Del(resourceTags)
	if field, named := judgedByTags[action]; named {
		tags, err := g.tagsForPolicies(req.Context(), field, body)
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
	switch {
	case launches(action) && dry(body):
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = io.WriteString(w, wouldHaveSucceeded) // the caller has gone: nobody is left to tell
	case catalogued[action]:
		g.serveCatalogue(w, req, body)
	case changesTags(action) && resp.Header.Get(lags) != "":
		g.serveTagChange(w, req, action, body)
	default:
		g.tagging.RLock()
		defer g.tagging.RUnlock()
		g.moto.ServeHTTP(w, req)
	}
}

// judgedByTags are the calls that policies judge by the tags of resources of which there may be several, and the form fields that
// name those.
var judgedByTags = map[string]*regexp.Regexp{
	"TerminateInstances": regexp.MustCompile(`^InstanceId\.\d+$`),
	"RunInstances":       regexp.MustCompile(`(^|\.)SubnetId$`),
	"CreateFleet":        regexp.MustCompile(`\.SubnetId$`),
}

// wouldHaveSucceeded is EC2's answer to a dry run that its caller's policies allow. Whether the launch template exists is not looked at:
// Karpenter's are simulated within it.
const wouldHaveSucceeded = "<Response><Errors><Error><Code>DryRunOperation</Code><Message>Request would have succeeded, but DryRun flag is set.</Message></Error></Errors></Response>"

func launches(action string) bool { return action == "RunInstances" || action == "CreateFleet" }

func dry(body []byte) bool {
	form, err := url.ParseQuery(string(body))
	return err == nil && form.Get("DryRun") == "true"
}

// tagsForPolicies are the tags of each resource of a call. EC2 judges each by its own, and ends all or none.
func (g *gateway) tagsForPolicies(ctx context.Context, field *regexp.Regexp, body []byte) (string, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	tags := map[string]map[string]string{}
	for name, values := range form {
		if field.MatchString(name) {
			tags[values[0]] = map[string]string{}
		}
	}
	if len(tags) == 0 {
		return "{}", nil
	}
	ids := slices.Sorted(maps.Keys(tags))
	found, err := g.networks.ec2.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{{Name: new("resource-id"), Values: ids}}})
	if err != nil {
		return "", fmt.Errorf("tags of %s: describe: %w", strings.Join(ids, ", "), err)
	}
	for _, tag := range found.Tags {
		tags[*tag.ResourceId][*tag.Key] = *tag.Value
	}
	text, err := json.Marshal(tags)
	return string(text), err
}
