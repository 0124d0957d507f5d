package awsfake

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// past holds the states that resources had before each write to them, by name.
type past[T any] map[string][]former[T]

// former is a state until a time; nil if the resource did not exist.
type former[T any] struct {
	was   *T
	until time.Time
}

// wrote records a copy of a resource before a write.
func (p past[T]) wrote(c *Calls, name string, was *T) {
	if c.Lag.Replicas > 0 {
		p[name] = append(p[name], former[T]{was, c.Now()})
	}
}

// shown returns a resource as the replica has it that answers this read: as it was up to Lag.Replicas ago.
func (p past[T]) shown(c *Calls, name string, live *T) *T {
	if c.Lag.Replicas == 0 {
		return live
	}
	at := c.Now().Add(-c.behind())
	for _, f := range p[name] {
		if f.until.After(at) {
			return f.was
		}
	}
	return live
}

// behind returns how old the state is that a read shows.
func (c *Calls) behind() time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.random == nil {
		c.random = rand.New(rand.NewPCG(c.Lag.Seed, 0))
	}
	switch {
	case c.age >= 0:
	case c.random.IntN(2) == 0: // one of the slowest
		c.age = c.Lag.Replicas
	default:
		c.age = time.Duration(c.random.Int64N(int64(c.Lag.Replicas)))
	}
	return c.age
}

func (r *Role) copied() *Role {
	if r == nil {
		return nil
	}
	other := *r
	other.Inline, other.Attached, other.Tags = maps.Clone(r.Inline), slices.Clone(r.Attached), slices.Clone(r.Tags)
	if r.PermissionsBoundary != nil {
		other.PermissionsBoundary = new(iamtypes.AttachedPermissionsBoundary)
		*other.PermissionsBoundary = *r.PermissionsBoundary
	}
	return &other
}

func (e *Entry) copied() *Entry {
	if e == nil {
		return nil
	}
	other := *e
	other.Policies, other.Tags = slices.Clone(e.Policies), maps.Clone(e.Tags)
	return &other
}

func (q *Queue) copied() *Queue {
	if q == nil {
		return nil
	}
	return &Queue{Attributes: maps.Clone(q.Attributes), Tags: maps.Clone(q.Tags), made: q.made}
}

func (r *Rule) copied() *Rule {
	if r == nil {
		return nil
	}
	other := *r
	other.Tags, other.Targets = slices.Clone(r.Tags), slices.Clone(r.Targets)
	return &other
}

func copiedAssociation(a *types.PodIdentityAssociation) *types.PodIdentityAssociation {
	if a == nil {
		return nil
	}
	other := *a
	other.Tags = maps.Clone(a.Tags)
	return &other
}

func copiedGroup(g *types.Nodegroup) *types.Nodegroup {
	if g == nil {
		return nil
	}
	other := *g
	other.Labels = maps.Clone(g.Labels)
	return &other
}
