// Package nodes makes the manifests of a rack's NodePools and EC2NodeClasses, and checks them like the API server and
// Karpenter do. It is separate from package plan because Karpenter's types are a large dependency: only what
// validates parameters imports it.
package nodes

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Compiled holds the manifests that a config asks for: EC2NodeClasses before NodePools, each kind sorted by name. The
// build pool's manifests are applied only if there are build nodes.
type Compiled struct {
	drafts []*draft
	// overlays are the manifests of the NodeOverlays, sorted by name.
	overlays []*draft
	config   params.Config
	// api is the API of the Karpenter that the manifests are for.
	api *api
	// version is the cluster's version of Kubernetes, and zones are those of its subnets; empty if unknown.
	version string
	zones   []string
}

// Compile makes the manifests, also if Karpenter is off, because parameters are checked then too.
func Compile(config params.Config, facts plan.Facts) Compiled {
	c := Compiled{config: config, api: apiOf(plan.Target(config, facts).Version)}
	if facts.Cluster != nil {
		c.version = facts.Cluster.Version
	}
	for _, subnet := range facts.Subnets {
		if subnet.Zone != "" && !slices.Contains(c.zones, subnet.Zone) {
			c.zones = append(c.zones, subnet.Zone)
		}
	}
	for _, p := range pools(config, facts) {
		p.api = c.api
		class, pool := p.nodeClass(config), p.nodePool(config)
		pool.class, class.expressions = class, evaluates(config)
		c.drafts = append(c.drafts, class, pool)
	}
	slices.SortStableFunc(c.drafts, func(a, b *draft) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
	})
	c.overlays = c.api.overlays(config)
	return c
}

// all returns the manifests in order of kind and name.
func (c Compiled) all() []*draft {
	return slices.SortedStableFunc(slices.Values(slices.Concat(c.drafts, c.overlays)), func(a, b *draft) int {
		return strings.Compare(a.kind, b.kind)
	})
}

// Objects returns the manifests to apply, or none if Karpenter is off.
func (c Compiled) Objects() []plan.Object {
	if !c.config.Enabled {
		return nil
	}
	var objects []plan.Object
	for _, d := range c.all() {
		if !d.idle {
			objects = append(objects, d.object)
		}
	}
	return objects
}

// Fingerprint returns a hash that identifies a set of manifests and the version of Karpenter that they are for.
func (c Compiled) Fingerprint() string {
	all := make([]plan.Object, 0, len(c.drafts))
	for _, d := range c.all() {
		all = append(all, d.object)
	}
	also := plan.Object{"applied": len(c.Objects()), "karpenter": c.api.Version, "values": c.config.ControllerValues}
	if c.config.Freeze { // it is laid over them
		also["freeze"] = true
	}
	sum := canonical.Hash(append(all, also))
	return hex.EncodeToString(sum[:8])
}
