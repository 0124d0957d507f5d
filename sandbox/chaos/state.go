package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// State describes what exists in AWS and in the cluster: name to content. Objects that are constantly recreated are
// left out.
type State map[string]string

// state reads the whole state.
func (w *World) state(ctx context.Context) (State, error) {
	all := &collection{state: State{}}
	looks, lookCtx := errgroup.WithContext(ctx)
	for _, look := range []func(context.Context, *collection) error{
		w.roles, w.queues, w.rules, w.eksCluster, w.podIdentities, w.nodegroups, w.network, w.parameters, w.records, w.cluster,
	} {
		looks.Go(func() error { return look(lookCtx, all) })
	}
	if err := looks.Wait(); err != nil {
		return nil, fmt.Errorf("chaos: look: %w", err)
	}
	return all.state, nil
}

// collection is a state that several readers fill concurrently.
type collection struct {
	mu    sync.Mutex
	state State
}

// add adds an entry to the state. The content is stored as JSON.
func (c *collection) add(what any, format string, args ...any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	plain := id.ReplaceAllString(fmt.Sprintf(format, args...), "$1")
	name := plain
	for n := 2; ; n++ { // several may have one name
		if _, taken := c.state[name]; !taken {
			break
		}
		name = fmt.Sprintf("%s (%d)", plain, n)
	}
	c.state[name] = address.ReplaceAllString(id.ReplaceAllString(string(text), "$1"), "")
	return nil
}

// Ids and addresses that differ between sandboxes, including those of the stack:
// Sawhorse-AccessRoleEC309AE6-059FE54FC2F91.
var (
	id      = regexp.MustCompile(`\b(sg|subnet|Sawhorse-\w+)-(?:[0-9a-f]{8,}|[0-9A-F]{13})\b`)
	address = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// difference returns a line for each difference from the wanted state.
func (s State) difference(wanted State) []string {
	var odd []string
	for name, is := range s {
		want, known := wanted[name]
		switch {
		case !known:
			odd = append(odd, "too much: "+name+" "+short(is))
		case want != is:
			odd = append(odd, "not as it should be: "+name+" "+apart(want, is))
		}
	}
	for name, want := range wanted {
		if _, there := s[name]; !there {
			odd = append(odd, "missing: "+name+" "+short(want))
		}
	}
	slices.Sort(odd)
	return odd
}

func short(text string) string { return text[:min(len(text), 200)] }

// apart shows two texts from shortly before the point at which they differ.
func apart(want, is string) string {
	i := 0
	for i < len(want) && i < len(is) && want[i] == is[i] {
		i++
	}
	from := strings.LastIndexAny(want[:i], ",{[") + 1
	return fmt.Sprintf("…%s, not …%s", short(is[from:]), short(want[from:]))
}

// held reports whether a pass holds the rack's lease, or held it and could not release it.
func (s State) held() bool { return s["record lease"] == `{"held":true}` }
