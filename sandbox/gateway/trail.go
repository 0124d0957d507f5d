package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/caller"
)

// trail keeps the latest calls that may change something, as CloudTrail does.
type trail struct {
	mu     sync.Mutex
	events []event
}

type event struct {
	call
	at   time.Time
	path string
}

// most is the minimum number of events that are kept.
const most = 10_000

// reading lists prefixes of actions that change nothing.
var reading = []string{"AssumeRole", "BatchGet", "Check", "Describe", "Filter", "Get", "Head", "List", "Query", "Receive", "Scan"}

func (t *trail) add(c call, path string) {
	for _, prefix := range reading {
		if strings.HasPrefix(c.Action, prefix) {
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) == 2*most {
		t.events = append([]event(nil), t.events[most:]...)
	}
	t.events = append(t.events, event{c, time.Now(), path})
}

func (t *trail) all() []event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]event(nil), t.events...)
}

// showTrail answers one line for each call; with ?since=, for each later call. A line has the time, the caller, the
// service, the action, and the path of the URL, which for EKS names the resource.
func (g *gateway) showTrail(w http.ResponseWriter, req *http.Request) {
	since := time.Time{}
	if text := req.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339Nano, text); err != nil {
			http.Error(w, "trail: since: "+err.Error(), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	names := map[string]string{}
	for _, e := range g.trail.all() {
		if !e.at.After(since) {
			continue
		}
		if names[e.AccessKey] == "" {
			names[e.AccessKey] = g.callerName(e.AccessKey)
		}
		_, _ = fmt.Fprintf(w, "%s %s %s %s %s\n", e.at.UTC().Format(time.RFC3339Nano), names[e.AccessKey], e.Service, e.Action, e.path)
	}
}

// callerName returns the name of the role or user, "root", or the access key itself if MiniStack does not know it.
func (g *gateway) callerName(accessKey string) string {
	arn, err := caller.ARN(g.cfg.MiniStack, accessKey)
	if err != nil || arn == "" {
		return accessKey
	}
	resource := arn[strings.LastIndex(arn, ":")+1:]
	if parts := strings.Split(resource, "/"); parts[0] == "assumed-role" && len(parts) == 3 {
		return parts[1]
	}
	return resource[strings.LastIndex(resource, "/")+1:]
}
