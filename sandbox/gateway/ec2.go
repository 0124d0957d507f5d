package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// authorized is the header with which MiniStack's wrapper reports that the caller's policies allow an EC2 call.
const authorized = "X-Sandbox-Authorized"

// lags is the header with which it reports that the caller does not see writes at once (ministack/lag.py).
const lags = "X-Sandbox-Lags"

// resourceTags is a header with the tags (JSON) of the instances that a call terminates, or of the images and subnets
// that it launches with. imageOwners is one with the owners of these images. moto has both, and MiniStack evaluates
// policies that need them.
const (
	resourceTags = "X-Sandbox-Resource-Tags"
	imageOwners  = "X-Sandbox-Image-Owners"
)

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
	if err := g.describe(req.Context(), check, action, body); err != nil {
		http.Error(w, "gateway: authorize an ec2 call: "+err.Error(), http.StatusBadGateway)
		return
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
	case g.cfg.Instances != nil && (action == describeInstances || action == terminateInstance):
		g.serveInstances(w, req, action, body)
	case launches(action) && dry(body):
		// The caller's policies allow it. Whether the launch template exists is not checked: Karpenter's are simulated inside Karpenter.
		fault.Deny(w, req, "ec2", http.StatusPreconditionFailed, "DryRunOperation",
			"Request would have succeeded, but DryRun flag is set.")
	case reserves(action):
		g.serveReservations(w, req, action, body)
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

// describe sets the headers of a check about the resources that a call names.
func (g *gateway) describe(ctx context.Context, check *http.Request, action string, body []byte) error {
	check.Header.Del(resourceTags)
	check.Header.Del(imageOwners)
	field, named := judgedByTags[action]
	ends := g.cfg.Instances != nil && action == terminateInstance
	if !named && !ends {
		return nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if ends {
		tags, err := g.tagsOfGroup(ctx, form.Get("InstanceId"))
		check.Header.Set(resourceTags, tags)
		return err
	}
	var ids, images []string
	for name, values := range form {
		if field.MatchString(name) {
			ids = append(ids, values[0])
		}
		if field.MatchString(name) && strings.HasSuffix(name, "ImageId") {
			images = append(images, values[0])
		}
	}
	tags, err := g.tagsForPolicies(ctx, ids)
	if err != nil {
		return err
	}
	check.Header.Set(resourceTags, tags)
	owners, err := g.ownersForPolicies(ctx, images)
	check.Header.Set(imageOwners, owners)
	return err
}

// judgedByTags lists the calls whose policies depend on the tags of several resources, and the form fields that name
// the resources.
var judgedByTags = map[string]*regexp.Regexp{
	"TerminateInstances": regexp.MustCompile(`^InstanceId\.\d+$`),
	"RunInstances":       regexp.MustCompile(`^ImageId$|(^|\.)SubnetId$`),
	"CreateFleet":        regexp.MustCompile(`\.(Image|Subnet)Id$`),
}

func launches(action string) bool { return action == "RunInstances" || action == "CreateFleet" }

func dry(body []byte) bool {
	form, err := url.ParseQuery(string(body))
	return err == nil && form.Get("DryRun") == "true"
}

// tagsForPolicies returns the tags of each resource of a call as JSON. EC2 authorizes each resource by its own tags,
// and executes the call for all of them or for none.
func (g *gateway) tagsForPolicies(ctx context.Context, ids []string) (string, error) {
	if len(ids) == 0 {
		return "{}", nil
	}
	tags := map[string]map[string]string{}
	for _, id := range ids {
		tags[id] = map[string]string{}
	}
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

// ownersForPolicies returns the owner of each image as JSON, as the condition key ec2:Owner has it: EC2's alias, or else
// the account.
func (g *gateway) ownersForPolicies(ctx context.Context, ids []string) (string, error) {
	if len(ids) == 0 {
		return "{}", nil
	}
	found, err := g.networks.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{
		Filters: []types.Filter{{Name: new("image-id"), Values: ids}},
	})
	if err != nil {
		return "", fmt.Errorf("images %s: describe: %w", strings.Join(ids, ", "), err)
	}
	owners := map[string]string{}
	for _, image := range found.Images {
		owners[*image.ImageId] = cmp.Or(aws.ToString(image.ImageOwnerAlias), *image.OwnerId)
	}
	text, err := json.Marshal(owners)
	return string(text), err
}
