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

// authorized is the header with which MiniStack's wrapper reports that the caller's policies allow an EC2 call.
const authorized = "X-Sandbox-Authorized"

// lags is the header with which it reports that the caller does not see writes at once (ministack/lag.py).
const lags = "X-Sandbox-Lags"

// resourceTags is a header with the tags (JSON) of the instances that a call terminates, or of the subnets that it
// launches into. moto has the tags, and MiniStack evaluates policies that need them.
const resourceTags = "X-Sandbox-Resource-Tags"

// serveEC2 has MiniStack check the signature and the policies, which moto does not do, and then has
// moto execute the call.
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
		_, _ = io.Copy(w, resp.Body) // fails only if the caller has closed the connection
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be reused
	switch {
	case launches(action) && dry(body):
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = io.WriteString(w, wouldHaveSucceeded) // fails only if the caller has closed the connection
	case action == "DescribeCapacityReservations":
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		_, _ = io.WriteString(w, noReservations) // fails only if the caller has closed the connection
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

// judgedByTags lists the calls whose policies depend on the tags of several resources, and the form fields that name
// the resources.
var judgedByTags = map[string]*regexp.Regexp{
	"TerminateInstances": regexp.MustCompile(`^InstanceId\.\d+$`),
	"RunInstances":       regexp.MustCompile(`(^|\.)SubnetId$`),
	"CreateFleet":        regexp.MustCompile(`\.SubnetId$`),
}

// wouldHaveSucceeded is EC2's answer to a dry run that the caller's policies allow. The gateway does not check that the
// launch template exists, because Karpenter's launch templates are simulated inside Karpenter.
const wouldHaveSucceeded = "<Response><Errors><Error><Code>DryRunOperation</Code><Message>Request would have succeeded, " +
	"but DryRun flag is set.</Message></Error></Errors></Response>"

// noReservations is EC2's answer in an account without capacity reservations. moto does not know the call, and Karpenter
// makes it for an EC2NodeClass that selects some.
const noReservations = `<DescribeCapacityReservationsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">` +
	`<requestId>sandbox</requestId>` +
	`<capacityReservationSet/></DescribeCapacityReservationsResponse>`

func launches(action string) bool { return action == "RunInstances" || action == "CreateFleet" }

func dry(body []byte) bool {
	form, err := url.ParseQuery(string(body))
	return err == nil && form.Get("DryRun") == "true"
}

// tagsForPolicies returns the tags of each resource of a call as JSON. EC2 authorizes each resource by its own tags,
// and executes the call for all of them or for none.
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
