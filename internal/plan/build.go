package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Build makes the plan for a rack. objects are the finished manifests of its EC2NodeClasses, NodeOverlays and NodePools; they come
// from package nodes, which is separate because Karpenter's types are a large dependency. If there are Problems, the
// Plan must not be used.
func Build(config params.Config, facts Facts, objects []Object) Outcome {
	b := &builder{config: config, facts: facts, target: targetOf(config, facts)}
	b.karpenter = versionOf(b.target.Release)
	b.plan = Plan{Format: Format, Rack: config.Rack, Goal: b.goal()}
	b.cluster()
	usable := len(b.problems) == 0
	b.values()
	if b.plan.Cluster.Gone {
		b.queue()
		b.infrastructure()
		b.plan.Steps = b.steps()
	} else if usable && (len(b.problems) == 0 || b.turningOff()) && b.plan.Goal != GoalNone && b.facts.Cluster != nil {
		b.access()
		b.network()
		b.nodegroups()
		b.queue()
		b.infrastructure()
		b.controller()
		b.autoscaler()
		if config.Enabled {
			b.plan.NodePools = nodePools(objects, config)
			b.proof()
		} else if b.turningOff() { // that may be refused, and then a freeze counts; one whose own value is refused stays as it is
			b.plan.NodePools.Frozen = config.Freeze || config.HasRefused(params.ParamFreeze) && facts.Records.Frozen()
		}
		b.plan.Steps = b.steps()
	}
	b.allowed()
	if facts.Offline && config.Freeze && config.Enabled { // a pass tells what is in force
		b.warn(params.ParamFreeze, "%s is true: %s", params.ParamFreeze, unfrozen)
	}
	return Outcome{Plan: b.plan, Problems: b.problems, Warnings: b.warnings}
}

// builder holds the input and the results of one Build.
type builder struct {
	config params.Config
	facts  Facts
	target target
	// karpenter is the target, with what the plan takes from it.
	karpenter karpenter
	plan      Plan
	problems  []params.Problem
	warnings  []params.Problem
}

func (b *builder) problem(parameter, format string, args ...any) {
	b.problems = append(b.problems, params.NewProblem(parameter, "", format, args...))
}

func (b *builder) warn(parameter, format string, args ...any) {
	b.warnings = append(b.warnings, params.NewProblem(parameter, "", format, args...))
}

// problemUnlessDisabling adds a problem. If Karpenter is being turned off, it adds a warning instead, because a
// problem with what only Karpenter needs must not block that.
func (b *builder) problemUnlessDisabling(parameter, format string, args ...any) {
	if b.facts.Records.WasOn && !b.config.Enabled {
		b.warn(parameter, format, args...)
		return
	}
	b.problem(parameter, format, args...)
}

func (b *builder) goal() Goal {
	switch {
	case b.config.Enabled:
		return GoalKarpenter
	case b.config.AuthMode:
		return GoalAccess
	default:
		return GoalNone
	}
}

// cluster checks that the cluster exists, lets the rack in, belongs to it and is usable. The owner's tag comes first: of a
// cluster that has not let the rack in, no problem or warning says anything else.
func (b *builder) cluster() {
	if b.plan.Goal == GoalNone {
		return
	}
	name, c := b.config.ClusterName, b.facts.Cluster
	switch {
	case c == nil && b.facts.Offline:
		c = &ClusterFacts{Cluster: Cluster{Name: name, Partition: "aws"}, Status: "ACTIVE"}
		b.facts.Cluster = c
	case c == nil && b.facts.Lost != nil && b.facts.Records.WasOn && !b.config.Enabled:
		b.plan.Cluster = *b.facts.Lost
		b.plan.Cluster.Gone = true
		b.warn("cluster_name", "cluster %s has been deleted; what Karpenter had in AWS is cleared away, and the rack is forgotten",
			b.plan.Cluster.Name)
		return
	case c == nil && b.facts.Lost != nil && b.facts.Records.WasOn:
		b.problem("cluster_name", "EKS has no cluster %s any more; write karpenter_enabled=false to clear away what Karpenter had in AWS",
			b.facts.Lost.ARN)
		return
	case c == nil && b.facts.Lost != nil:
		b.problem("cluster_name", "EKS has no cluster %s any more; delete the rack's parameters, and the rack is forgotten, "+
			"or create a cluster of that name", b.facts.Lost.ARN)
		return
	case c == nil && b.config.HasRefused("cluster_name"): // cluster_name has a problem already
		return
	case c == nil:
		b.problem("cluster_name", "there is no EKS cluster %q in this account and region; create it, or write the name of an existing one", name)
		return
	case !b.facts.Authorized(b.config.Rack):
		b.unauthorized()
		return
	case b.facts.Records.ClusterLock != "" && b.facts.Records.ClusterLock != b.config.Rack:
		b.problem("cluster_name", "cluster %q belongs to rack %q; a cluster has one rack; write the name of another cluster, or "+
			"delete this rack's parameters", name, b.facts.Records.ClusterLock)
	case c.AutoMode:
		b.problemUnlessDisabling("cluster_name", "cluster %q runs EKS Auto Mode, which brings its own Karpenter; use a cluster without "+
			"Auto Mode", name)
	case c.Status != "ACTIVE" && c.Status != "UPDATING":
		b.problem("cluster_name", "cluster %q is %s; it must be ACTIVE; wait until it is, the next pass tries again", name, c.Status)
	}
	b.plan.Cluster = c.Cluster
	if !b.facts.tagged(b.config.Rack) {
		missing, remedy := b.ownersTag()
		b.warn("cluster_name", "%s; the rack's access was migrated before and it goes on, but AWS refuses what it would change of the "+
			"cluster as long as the tag is missing; %s", missing, remedy)
	}
	b.version()
}

// unauthorized reports that the cluster lacks the rack's tag, with which the cluster's owner admits the rack. Without it,
// whoever writes the rack's parameters could choose any cluster, and the change of its access mode cannot be undone. The
// plan then names no cluster, so that a full pass does not repair this one.
func (b *builder) unauthorized() {
	missing, remedy := b.ownersTag()
	b.problem("cluster_name", "%s; %s; if its owner has let another rack in, write the name of another cluster", missing, remedy)
}

// ownersTag says that the cluster lacks the rack's tag, and what sets it.
func (b *builder) ownersTag() (missing, remedy string) {
	rack, cluster, tag := b.config.Rack, b.facts.Cluster, ownership.TagRack+"="+b.config.Rack
	return fmt.Sprintf("cluster %q does not carry the tag %s, by which its owner lets the rack in", cluster.Name, tag),
		fmt.Sprintf("run `sawhorse register %s --cluster %s`, or, with the owner's rights, `aws eks tag-resource --resource-arn %s --tags %s`",
			rack, cluster.Name, cmp.Or(cluster.ARN, "ARN"), tag)
}

// access chooses the authentication mode. EKS cannot go back to an earlier mode, so API stays API.
func (b *builder) access() {
	b.plan.Access = Access{Mode: "API_AND_CONFIG_MAP", Rights: rights, Namespace: proofNamespace(b.config.Rack)}
	if b.facts.Cluster.AuthMode == "API" {
		b.plan.Access.Mode = "API"
	}
}

// network chooses what gets the discovery tag: the subnets of the node groups, their security groups and the cluster
// security group.
func (b *builder) network() {
	cluster, network := b.config.ClusterName, &b.plan.Network
	network.Subnets = b.tagged("subnet", "subnet_ids", b.config.SubnetIDs, b.facts.Subnets)
	network.SecurityGroups = b.tagged("security group", "security_group_ids", b.config.SecurityGroupIDs, b.facts.SecurityGroups)
	var owned []string
	for _, group := range b.facts.SecurityGroups {
		ofController := func(key string) bool { return strings.HasPrefix(key, ownership.TagClusterOwned) }
		if slices.Contains(network.SecurityGroups, group.ID) && slices.ContainsFunc(slices.Collect(maps.Keys(group.Tags)), ofController) {
			owned = append(owned, group.ID)
		}
	}
	if len(owned) > 1 {
		b.warn("karpenter_auth_mode", "security groups %s all carry a %s… tag, and load balancer controllers want exactly one such group on a "+
			"node; take the tag off all but one", strings.Join(owned, ", "), ownership.TagClusterOwned)
	}
	// follows means that missing subnets only follow from another problem.
	follows := b.config.HasRefused("subnet_ids") || b.config.Enabled && len(b.facts.Present()) == 0
	if len(b.facts.Subnets) == 0 && len(b.config.SubnetIDs) == 0 && !b.facts.Offline && !follows {
		b.problemUnlessDisabling("karpenter_auth_mode", "no subnets were found on the node groups of cluster %s, so Karpenter would not know "+
			"where to launch nodes; create a managed node group", cluster)
	}
}

// tagged returns the IDs of the found subnets or security groups that get the discovery tag. It refuses those with the
// tag of another cluster, and of the IDs that the parameter names those that EC2 does not have or has in another VPC than
// the cluster's: that network is not the rack's. A subnet that is shared with the account is in its owner's VPC, as the
// cluster then is.
func (b *builder) tagged(what, parameter string, named []string, found []Tagged) (ids []string) {
	switch {
	case b.config.HasRefused(parameter):
		return nil // the found ones were not chosen by the user
	case b.facts.Offline && len(found) == 0:
		return slices.Clone(named)
	}
	vpc := b.facts.Cluster.VPC
	for _, t := range found {
		if vpc != "" && t.VPC != "" && t.VPC != vpc && slices.Contains(named, t.ID) {
			b.problemUnlessDisabling(parameter, "%s has %s, which is in VPC %s, and cluster %s is in VPC %s; write a %s of VPC %s, or take it out",
				parameter, t.ID, t.VPC, b.config.ClusterName, vpc, what, vpc)
			continue
		}
		if other := t.Tags[ownership.TagDiscovery]; other != "" && other != b.config.ClusterName {
			b.problemUnlessDisabling("karpenter_auth_mode", "%s %s carries the tag %s=%s of another cluster; in a shared VPC only one rack can "+
				"have Karpenter; give cluster %s subnets and security groups of its own, or remove the tag if cluster %s no longer exists",
				what, t.ID, ownership.TagDiscovery, other, b.config.ClusterName, other)
			continue
		}
		ids = append(ids, t.ID)
	}
	for _, id := range named {
		if !b.facts.Offline && !slices.ContainsFunc(found, func(t Tagged) bool { return t.ID == id }) {
			b.problemUnlessDisabling(parameter, "%s has %s, but there is no such %s in this account and region; take it out, or write the id of one",
				parameter, id, what)
		}
	}
	return ids
}

// tags returns the tags for AWS resources: the rack's own and the ownership tags.
func (b *builder) tags() map[string]string {
	tags := ownership.Tags(b.config.Rack, b.plan.Cluster.ARN)
	maps.Copy(tags, b.config.Tags) // the parameter does not accept the ownership tags
	return tags
}
