package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
)

// tagging delays a change of EC2 tags by a role until its lag is over. moto shows a change at once. So the change is
// made to get the answer, reverted before another call can see it, and made again later. Every call to moto holds a
// read lock.
type tagging struct{ sync.RWMutex }

// tagChange is the request of CreateTags or DeleteTags.
type tagChange struct {
	delete    bool
	resources []string
	tags      []types.Tag // without values if only the keys are named
}

// readTagChange parses the request of either action.
func readTagChange(action string, body []byte) (tagChange, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return tagChange{}, fmt.Errorf("read: %w", err)
	}
	change := tagChange{delete: action == "DeleteTags", resources: numbered(form, "ResourceId")}
	for n := 1; form.Has(fmt.Sprintf("Tag.%d.Key", n)); n++ {
		tag := types.Tag{Key: new(form.Get(fmt.Sprintf("Tag.%d.Key", n)))}
		if value := fmt.Sprintf("Tag.%d.Value", n); form.Has(value) {
			tag.Value = new(form.Get(value))
		}
		change.tags = append(change.tags, tag)
	}
	return change, nil
}

// serveTagChange answers CreateTags and DeleteTags.
func (g *gateway) serveTagChange(w http.ResponseWriter, req *http.Request, action string, body []byte) {
	change, err := readTagChange(action, body)
	if err != nil {
		http.Error(w, "gateway: tags: "+err.Error(), http.StatusBadRequest)
		return
	}
	delays := map[string]time.Duration{}
	for _, id := range change.resources {
		if delays[id], err = g.lag(req.Context(), "tags", id); err != nil {
			http.Error(w, "gateway: tags: "+err.Error(), http.StatusBadGateway)
			return
		}
	}
	g.tagging.Lock()
	defer g.tagging.Unlock()
	before, err := g.tagsOf(req.Context(), change)
	if err != nil {
		http.Error(w, "gateway: tags: "+err.Error(), http.StatusBadGateway)
		return
	}
	answer := httptest.NewRecorder()
	g.moto.ServeHTTP(answer, req)
	if answer.Code == http.StatusOK {
		for id, delay := range delays {
			if err := g.later(req.Context(), change, id, before[id], delay); err != nil {
				http.Error(w, "gateway: tags: "+err.Error(), http.StatusBadGateway)
				return
			}
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = io.Copy(w, answer.Body) // fails only if the caller has closed the connection
}

// later reverts the change of one resource, and makes it again after the delay. The caller holds the lock.
func (g *gateway) later(ctx context.Context, change tagChange, id string, before []types.Tag, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	client := g.networks.ec2
	if _, err := client.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: keys(change.tags)}); err != nil {
		return fmt.Errorf("%s: take back: %w", id, err)
	}
	if len(before) > 0 {
		if _, err := client.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: before}); err != nil {
			return fmt.Errorf("%s: take back: %w", id, err)
		}
	}
	time.AfterFunc(delay, func() {
		g.tagging.Lock()
		defer g.tagging.Unlock()
		// Ignored: an error means that the resource has been deleted meanwhile, or that the sandbox is ending.
		if change.delete {
			_, _ = client.DeleteTags(context.Background(), &ec2.DeleteTagsInput{Resources: []string{id}, Tags: change.tags})
		} else {
			_, _ = client.CreateTags(context.Background(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: change.tags})
		}
	})
	return nil
}

// tagsOf returns the tags that a change may replace or delete, by resource.
func (g *gateway) tagsOf(ctx context.Context, change tagChange) (map[string][]types.Tag, error) {
	found, err := g.networks.ec2.DescribeTags(ctx, &ec2.DescribeTagsInput{
		Filters: []types.Filter{{Name: new("resource-id"), Values: change.resources}},
	})
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	named := map[string]bool{}
	for _, tag := range change.tags {
		named[*tag.Key] = true
	}
	before := map[string][]types.Tag{}
	for _, tag := range found.Tags {
		if named[*tag.Key] {
			before[*tag.ResourceId] = append(before[*tag.ResourceId], types.Tag{Key: tag.Key, Value: tag.Value})
		}
	}
	return before, nil
}

// keys returns the tags without values. DeleteTags deletes such a tag whatever its value is.
func keys(tags []types.Tag) []types.Tag {
	var bare []types.Tag
	for _, tag := range tags {
		bare = append(bare, types.Tag{Key: tag.Key})
	}
	return bare
}

// lag asks MiniStack how long a write takes until it is visible.
func (g *gateway) lag(ctx context.Context, kind, resource string) (time.Duration, error) {
	target := g.cfg.MiniStack.JoinPath("/_sandbox/lag/begin")
	target.RawQuery = url.Values{"kind": {kind}, "resource": {resource}}.Encode()
	var answer struct{ Seconds float64 }
	if err := ask.JSON(ctx, http.MethodPost, target.String(), nil, &answer); err != nil {
		return 0, fmt.Errorf("lag: %w", err)
	}
	return time.Duration(answer.Seconds * float64(time.Second)), nil
}

// changesTags reports whether an EC2 action changes tags.
func changesTags(action string) bool { return action == "CreateTags" || action == "DeleteTags" }
