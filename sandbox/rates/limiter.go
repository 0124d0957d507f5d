package rates

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limiter limits the rate of calls with token buckets. The zero Limiter is off and allows every call.
type Limiter struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu      sync.Mutex
	on      bool
	buckets map[string]*bucket
}

// bucket is the bucket of one quota, or of one action.
type bucket struct {
	quota          Quota
	tokens, least  float64
	filled         time.Time
	given, refused int
	// waiting has the calls that were rejected and may be retried, with the time of the first rejection. waited is the
	// longest time from a call's first rejection until it was allowed.
	waiting map[string]time.Time
	waited  time.Duration
}

// Use describes the use of one bucket.
type Use struct {
	Service string `json:"service"`
	Actions string `json:"actions"`
	// Published reports whether AWS publishes the rate. Otherwise it is an assumption.
	Published      bool    `json:"published"`
	PerSecond      float64 `json:"perSecond"`
	Given, Refused int
	// Peak is the largest share of the bucket that was in use at once, from 0 to 1.
	Peak float64
	// Waited is the longest time, in seconds, from the first rejection of a call to its success in a later try. GivenUp
	// is the number of calls that were rejected in all their tries.
	Waited  float64
	GivenUp int
}

// Take reports whether a call is allowed. The tries of one call have the same invocation. Without an invocation, tries
// count as separate calls.
func (l *Limiter) Take(service, action, invocation string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on {
		return true
	}
	b := l.bucket(service, action)
	return b == nil || b.take(l.now(), invocation)
}

func (l *Limiter) now() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

// bucket returns the bucket of an action; nil if there is no quota for it.
func (l *Limiter) bucket(service, action string) *bucket {
	quota, found := find(service, action)
	if !found {
		return nil
	}
	name := service + " " + strings.Join(quota.Actions, " ")
	if quota.Each {
		name, quota.Actions = service+" "+action, []string{action}
	}
	b := l.buckets[name]
	if b == nil {
		b = &bucket{quota: quota, tokens: quota.Burst, least: quota.Burst, filled: l.now(), waiting: map[string]time.Time{}}
		l.buckets[name] = b
	}
	return b
}

// find returns the quota that names the action, or else the quota for the service's other actions.
func find(service, action string) (Quota, bool) {
	for _, q := range Quotas {
		if q.Service == service && (len(q.Actions) == 0 || slices.Contains(q.Actions, action)) {
			return q, true
		}
	}
	return Quota{}, false
}

func (b *bucket) take(now time.Time, invocation string) bool {
	b.tokens = min(b.quota.Burst, b.tokens+now.Sub(b.filled).Seconds()*b.quota.PerSecond)
	b.filled = now
	if b.tokens < 1 {
		b.refused++
		if _, known := b.waiting[invocation]; !known && invocation != "" {
			b.waiting[invocation] = now
		}
		return false
	}
	if since, known := b.waiting[invocation]; known {
		b.waited = max(b.waited, now.Sub(since))
		delete(b.waiting, invocation)
	}
	b.tokens--
	b.least = min(b.least, b.tokens)
	b.given++
	return true
}

// Report returns the use of each bucket since the limiter was switched on, sorted by service and action.
func (l *Limiter) Report() []Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	uses := []Use{}
	for _, b := range l.buckets {
		q := b.quota
		uses = append(uses, Use{
			Service: q.Service, Actions: cmp.Or(strings.Join(q.Actions, ", "), "all others"), Published: q.Source != "",
			PerSecond: q.PerSecond, Given: b.given, Refused: b.refused, Peak: (q.Burst - b.least) / q.Burst,
			Waited: b.waited.Seconds(), GivenUp: len(b.waiting),
		})
	}
	slices.SortFunc(uses, func(a, b Use) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Actions, b.Actions))
	})
	return uses
}

// ServeHTTP controls the limiter: PUT switches it on with full buckets, DELETE switches it off, GET returns the Report.
func (l *Limiter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(l.Report()) // fails only if the caller has closed the connection
	case http.MethodPut, http.MethodDelete:
		l.mu.Lock()
		l.on, l.buckets = req.Method == http.MethodPut, map[string]*bucket{}
		l.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "rates: GET, PUT or DELETE", http.StatusMethodNotAllowed)
	}
}
