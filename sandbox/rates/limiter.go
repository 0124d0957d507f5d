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

// Limiter gives calls their tokens. The zero Limiter is off and gives all of them.
type Limiter struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	mu      sync.Mutex
	on      bool
	began   time.Time
	buckets map[string]*bucket
}

// bucket is one quota's, or that of one action.
type bucket struct {
	quota          Quota
	tokens, least  float64
	filled         time.Time
	given, refused int
	refusedSince   time.Time
	longest        time.Duration
	// waiting are the calls that were refused and try again, since when; waited is the longest that one did so until it was given.
	waiting map[string]time.Time
	waited  time.Duration
}

// Use is what was asked of one bucket.
type Use struct {
	Service string `json:"service"`
	Actions string `json:"actions"`
	// Published tells that the rate is AWS's own word, and no assumption.
	Published      bool    `json:"published"`
	Burst          float64 `json:"burst"`
	PerSecond      float64 `json:"perSecond"`
	Given, Refused int
	// Peak is the greatest part of the bucket that was in use at once, from 0 to 1; Mean the part of all that it would have given.
	Peak, Mean float64
	// Longest is for how long, in seconds, the bucket refused without giving one token in between.
	Longest float64
	// Waited is the longest time, in seconds, from the first refusal of a call to its success in a later try. GivenUp are the calls
	// that were refused in all their tries.
	Waited  float64
	GivenUp int
}

// Take tells whether a call may go on. The tries of one call have the same invocation; without one, tries are not told apart.
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

// bucket is the one of an action; nil where there is no quota for it.
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

// find is the quota that names the action, or that of the service's other actions.
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
		if b.refusedSince.IsZero() {
			b.refusedSince = now
		}
		b.longest = max(b.longest, now.Sub(b.refusedSince))
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
	b.refusedSince = time.Time{}
	b.given++
	return true
}

// Report is what each bucket was asked since the limiter was switched on, by service and action.
func (l *Limiter) Report() []Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	uses := []Use{}
	elapsed := l.now().Sub(l.began).Seconds()
	for _, b := range l.buckets {
		q := b.quota
		uses = append(uses, Use{
			Service: q.Service, Actions: cmp.Or(strings.Join(q.Actions, ", "), "all others"), Published: q.Source != "", Burst: q.Burst, PerSecond: q.PerSecond,
			Given: b.given, Refused: b.refused, Longest: b.longest.Seconds(),
			Waited: b.waited.Seconds(), GivenUp: len(b.waiting),
			Peak: (q.Burst - b.least) / q.Burst, Mean: float64(b.given) / (q.Burst + q.PerSecond*elapsed),
		})
	}
	slices.SortFunc(uses, func(a, b Use) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Actions, b.Actions))
	})
	return uses
}

// ServeHTTP switches the limiter: PUT on, with full buckets, DELETE off; GET is the Report.
func (l *Limiter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(l.Report()) // the caller has gone: nobody is left to tell
	case http.MethodPut, http.MethodDelete:
		l.mu.Lock()
		l.on, l.began, l.buckets = req.Method == http.MethodPut, l.now(), map[string]*bucket{}
		l.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "rates: GET, PUT or DELETE", http.StatusMethodNotAllowed)
	}
}
