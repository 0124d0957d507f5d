package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/sawhorse-io/sawhorse/sandbox/caller"
)

// calls counts the calls since the last reset.
type calls struct {
	mu sync.Mutex
	n  map[call]int
}

// tally has counts by service and action.
type tally map[string]map[string]int

func newCalls() *calls { return &calls{n: map[call]int{}} }

func (c *calls) add(one call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[one]++
}

func (c *calls) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = map[call]int{}
}

// by groups the counts by the name that belongs to an access key.
func (c *calls) by(name func(accessKey string) string) map[string]tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]tally{}
	for one, n := range c.n {
		who := name(one.AccessKey)
		if out[who] == nil {
			out[who] = tally{}
		}
		if out[who][one.Service] == nil {
			out[who][one.Service] = map[string]int{}
		}
		out[who][one.Service][one.Action] += n
	}
	return out
}

// showCalls answers {"ssm": {"PutParameter": 3}}. With ?by=caller it answers the same for each role, by its name.
func (g *gateway) showCalls(w http.ResponseWriter, req *http.Request) {
	var answer any = g.calls.by(func(string) string { return "" })[""]
	if req.URL.Query().Get("by") == "caller" {
		answer = g.calls.by(g.callerName)
	} else if answer.(tally) == nil {
		answer = tally{}
	}
	writeJSON(w, "application/json", answer)
}

func (g *gateway) resetCalls(w http.ResponseWriter, _ *http.Request) {
	g.calls.reset()
	w.WriteHeader(http.StatusNoContent)
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

func writeJSON(w http.ResponseWriter, contentType string, v any) {
	w.Header().Set("Content-Type", contentType)
	_ = json.NewEncoder(w).Encode(v) // fails only if the caller has closed the connection
}
