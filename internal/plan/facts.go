package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Facts holds what was observed of a rack before planning: in AWS and in the rack's own records. On the command line
// all of it is optional, and what is absent was not observed.
type Facts struct {
	// Offline means that nothing was looked up. What is absent is unknown, which is not a problem.
	Offline bool          `json:"-"`
	Cluster *ClusterFacts `json:"cluster,omitempty"`
	// Lost is the rack's recorded cluster if EKS no longer has it, and nil for any other cluster that was not found.
	Lost           *Cluster    `json:"lost,omitempty"`
	NodeGroups     []NodeGroup `json:"nodegroups,omitempty"`
	Subnets        []Tagged    `json:"subnets,omitempty"`
	SecurityGroups []Tagged    `json:"securityGroups,omitempty"`
	PodIdentity    bool        `json:"podIdentityAgent,omitempty"`
	OIDCProvider   bool        `json:"oidcProvider,omitempty"`
	// OIDCWithoutSTS means that the OIDC provider lacks the client ID sts.amazonaws.com, so that STS refuses its
	// tokens.
	OIDCWithoutSTS bool `json:"oidcProviderWithoutSTS,omitempty"`
	// CNI is where the VPC CNI gets its credentials, or nil if that was not observed.
	CNI *CNI `json:"cni,omitempty"`
	// SystemPolicies has the ARNs of the policies that are attached to the roles of the system node groups.
	SystemPolicies []string `json:"systemPolicies,omitempty"`
	// NoSpotRole means that the account lacks EC2's service-linked role for spot instances. It is looked up if a pool may
	// launch any.
	NoSpotRole bool `json:"noSpotRole,omitempty"`
	// Architectures maps instance types that Karpenter does not know to their architecture according to EC2: amd64 or
	// arm64.
	Architectures map[string]string `json:"architectures,omitempty"`
	// Images maps what karpenter_config names, IDs of images and public parameters that have one, to images. What EC2 shows
	// the account no image for is left out.
	Images map[string]Image `json:"images,omitempty"`
	// AliasImages maps the public parameters that Karpenter reads for the written aliases, and for the releases in Aged (BehindAlias), to
	// the IDs of images that they have, "" for a parameter that does not exist. What was not looked up is left out.
	AliasImages map[string]string `json:"aliasImages,omitempty"`
	// Aged maps aliases by age, such as al2023@latest-7d, to the alias of the release that they name today, "" if AWS has none. What was
	// not looked up is left out.
	Aged map[string]string `json:"aged,omitempty"`
	// Offered maps the instance families that pools name to the zones in which EC2 offers them. What was not looked up is left out.
	Offered map[string][]string `json:"offered,omitzero"`
	// Reservations maps the IDs of capacity reservations and blocks that pools name to those that EC2 shows the account, PlacementGroups
	// the IDs and names of placement groups to their states. What EC2 shows none for is left out. Both are nil if nothing was looked up.
	Reservations    map[string]Reservation `json:"reservations,omitzero"`
	PlacementGroups map[string]string      `json:"placementGroups,omitzero"`
	// APIs are those APIs of the cluster that templates of Karpenter's chart ask for and that it serves (MonitorAPI), or nil if
	// they were not looked up.
	APIs []string `json:"apis,omitzero"`
	// Pools maps NodePools to what they run now.
	Pools map[string]PoolFacts `json:"pools,omitempty"`
	// GroupPods is the number of pods on the nodes of each node group, without those of DaemonSets, or nil if they were not
	// counted.
	GroupPods map[string]int `json:"-"`
	// NodeClaims are the cluster's NodeClaims, or nil if they were not looked up. Now is the time from which their age counts.
	NodeClaims []Object  `json:"nodeclaims,omitempty"`
	Now        time.Time `json:"-"`
	// Refused are the problems with what the plan in force does not have, because of what others have in the cluster.
	Refused []params.Problem `json:"-"`
	// Unmanaged lists resources that have a name Sawhorse uses but not both ownership tags, in words for a Problem.
	Unmanaged []string `json:"foreign,omitempty"`
	// Records has the rack's own records.
	Records Records `json:"records"`
	// Writes maps parameters to their versions in Parameter Store.
	Writes map[string]int64 `json:"-"`
	// Force has the guards to override: those of the requests of the pass, but that of a version of Karpenter that has failed
	// since.
	Force events.Force `json:"-"`
	// Deployment has what the deployment of Sawhorse allows racks to do.
	Deployment Deployment `json:"-"`
}

// Deployment holds what the operator of the stack, by its context values, allows the writers of parameters to do.
type Deployment struct {
	// Unknown means that nobody knows what the deployment allows beside RequireClusterTag. What it may allow is then a
	// warning.
	Unknown bool
	// RequireClusterTag requires a tag on the cluster, with which its owner admits the rack.
	RequireClusterTag bool
	// ImageRepositories are the image repositories, beside Karpenter's own, for controllers of Karpenter's versions whose
	// digest is not known. An entry is exact, or a prefix that ends in /*.
	ImageRepositories []string
	// ImageOwners are the owners, beside Amazon, whose images nodes may run: accounts, or EC2's alias aws-marketplace.
	ImageOwners []string
	// SystemNamespaces are the namespaces, beside kube-system and the rack's own, whose Deployments may be placed on
	// system nodes.
	SystemNamespaces []string
	// Proxies are the proxies that Karpenter's controller may use, and the hosts and networks that it may reach without
	// one.
	Proxies []string
	// ObjectPrefixes are the prefixes (s3://bucket/prefix) where objects of JSON parameters may be. ownership.RackInPrefix in
	// one is the name of the rack that reads.
	ObjectPrefixes []string
	// ObjectOwners are the accounts whose buckets are read. A deleted bucket's name may be taken by another account.
	ObjectOwners []string
	// NodeRoles are patterns for the roles that a copy of a node group may get: path and name, where * matches
	// anything.
	NodeRoles []string
	// Boundary is the ARN of a permissions boundary that is not the stack's own, and so may allow the nodes' role whatever
	// node_policy_arns names. NodePolicies are those that it may name then. Without a Boundary it may name any.
	Boundary     string
	NodePolicies []string
	// RolePath is the path below which the stack's roles are, with a slash at both ends; empty is the same as "/".
	RolePath string
}

// ObjectsOf returns the prefixes below which a rack's objects may be.
func (d Deployment) ObjectsOf(rack string) (prefixes []string) {
	for _, prefix := range d.ObjectPrefixes {
		prefixes = append(prefixes, strings.ReplaceAll(prefix, ownership.RackInPrefix, rack))
	}
	return prefixes
}

// mayHand reports whether a copy of a node group may get the role of this ARN.
func (d Deployment) mayHand(role string) bool {
	_, name, _ := strings.Cut(role, ":role/")
	return slices.ContainsFunc(d.NodeRoles, func(pattern string) bool {
		whole, err := regexp.MatchString("^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")+"$", name)
		return err == nil && whole
	})
}

// without returns those of the elements that Proxies has not.
func (d Deployment) without(elements []string) []string {
	return slices.DeleteFunc(elements, func(element string) bool { return slices.Contains(d.Proxies, element) })
}

// Authorized reports whether the cluster's owner has let the rack in with the tag, or its access has been migrated before. A cluster
// that was created again under the name of the rack's former cluster needs the tag: it has another OIDC issuer, and may be in the mode
// CONFIG_MAP, to which EKS never returns a cluster.
func (f Facts) Authorized(rack string) bool {
	was, is := f.Records.Issuer, f.Cluster.OIDCIssuer
	migrated := (f.Records.Goal == GoalAccess || f.Records.Goal == GoalKarpenter) && f.Cluster.AuthMode != "CONFIG_MAP" &&
		(was == "" || is == "" || was == is)
	return migrated || f.tagged(rack)
}

// tagged reports whether the cluster has the rack's tag, if the deployment requires it. On the command line, tags that were
// not looked up are not missing.
func (f Facts) tagged(rack string) bool {
	return !f.Deployment.RequireClusterTag || f.Cluster.Tags[ownership.TagRack] == rack || f.Offline && f.Cluster.Tags == nil
}

// Restricted returns what may be known of a cluster whose owner has not let the rack in: what Authorized looks at.
func (c ClusterFacts) Restricted() *ClusterFacts {
	return &ClusterFacts{Cluster: Cluster{Name: c.Name, ARN: c.ARN, OIDCIssuer: c.OIDCIssuer}, AuthMode: c.AuthMode, Tags: c.Tags}
}

// PoolFacts describes what one NodePool runs: the number of its nodes, and their total capacity as Kubernetes
// quantities.
type PoolFacts struct {
	Nodes  int    `json:"nodes"`
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
	// Others means that the rack did not make it. Static means that it has a number of nodes, whatever pods there are.
	Others bool `json:"others,omitempty"`
	Static bool `json:"static,omitempty"`
	// Pods is the number of pods on its nodes without those of DaemonSets, or nil if they were not counted.
	Pods *int `json:"pods,omitempty"`
}

// Records holds what Sawhorse recorded about the rack in earlier passes.
type Records struct {
	// ClusterLock is the rack that the cluster belongs to, or empty.
	ClusterLock string `json:"claim,omitempty"`
	// Goal is the goal of the last accepted plan, and empty for a new rack. GoalKarpenter means that Karpenter is on or is
	// being turned on.
	Goal Goal `json:"goal,omitempty"`
	// WasOn is true from the first accepted plan with Karpenter until the removal is complete.
	WasOn bool `json:"wasOn,omitempty"`
	// Credentials is "podidentity" or "irsa". Once made, the choice is kept.
	Credentials string `json:"credentials,omitempty"`
	// HadBuildRole means that build nodes have had a role of their own since Karpenter was turned on.
	HadBuildRole bool `json:"hadBuildRole,omitempty"`
	// HadMigration means that node groups have been named to be emptied since Karpenter was turned on.
	HadMigration bool `json:"hadMigration,omitempty"`
	// CNIIndependent means that the roles of nodes in the last accepted plan lack the policy of the CNI.
	CNIIndependent bool `json:"cniIndependent,omitempty"`
	// Checked identifies the pool manifests that passed the checks. The same manifests are not checked again.
	Checked string `json:"checked,omitempty"`
	// Karpenter describes the Karpenter that the rack runs.
	Karpenter KarpenterRecord `json:"karpenter,omitzero"`
	// Applied maps each step to the fingerprint that was last applied.
	Applied map[string]string `json:"applied,omitempty"`
	// Warnings has the warnings of each step's last run. They are valid until the step runs again.
	Warnings map[string][]params.Problem `json:"-"`
	// Emptied maps groups that must return to their former size to the size they had before Sawhorse emptied them as build groups.
	Emptied map[string]Scaling `json:"-"`
	// Paused means that the last pass found the rack paused. It stays so while the parameter has a value that is refused.
	Paused bool `json:"paused,omitempty"`
	// Held means that the last pass found the rack held by the stack's hold.
	Held bool `json:"held,omitempty"`
	// Issuer is the OIDC issuer of the cluster that the plan in force is for, or empty if that is not known.
	Issuer string `json:"-"`
	// Params has the parameters of the last accepted plan, as written.
	Params map[string]string `json:"params,omitempty"`
	// Objects has the digests of the objects that these parameters name, by s3:// URI.
	Objects map[string]string `json:"objects,omitempty"`
}

// From identifies the parameters and the objects of the last accepted plan. A plan that was made from others is older: the pass
// that accepted the last one was stopped before it saved it.
func (r Records) From() string { return fingerprint([]any{r.Params, r.Objects}) }

// ClusterFacts holds the result of DescribeCluster.
type ClusterFacts struct {
	Cluster
	Status   string `json:"status"`
	Version  string `json:"version"`
	AuthMode string `json:"authMode"`
	AutoMode bool   `json:"autoMode,omitempty"`
	// IPv6 means that pods and services have IPv6 addresses (EKS's ipFamily), which never changes.
	IPv6 bool `json:"ipv6,omitempty"`
	// VPC is the VPC of the cluster and its nodes.
	VPC string `json:"vpc,omitempty"`
	// Tags are the cluster's tags, or nil if they were not looked up (Offline).
	Tags map[string]string `json:"tags,omitempty"`
}

// NodeGroup has the shape of EKS's DescribeNodegroup answer.
type NodeGroup struct {
	Name string `json:"nodegroupName"`
	// Status is EKS's status: ACTIVE, UPDATING, DEGRADED, DELETING, CREATE_FAILED and others. An empty status counts as
	// ACTIVE.
	Status        string            `json:"status,omitempty"`
	Health        Health            `json:"health,omitzero"`
	CapacityType  string            `json:"capacityType,omitempty"`
	InstanceTypes []string          `json:"instanceTypes,omitempty"`
	AMIType       string            `json:"amiType,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Taints        []NodeGroupTaint  `json:"taints,omitempty"`
	Scaling       Scaling           `json:"scalingConfig"`
	Subnets       []string          `json:"subnets,omitempty"`
	Resources     Resources         `json:"resources"`
	// SecurityGroups are the security groups of the group's nodes, if they use others than the cluster security group.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	NodeRole       string   `json:"nodeRole,omitempty"`
	// LostTemplate is the launch template and version that the group was created from, for example "lt-1 version 3", if
	// EC2 no longer has it. EKS then cannot launch nodes for the group, and their security groups are unknown.
	LostTemplate string `json:"lostTemplate,omitempty"`
	// Tags identify a copy that Sawhorse made to replace another group.
	Tags map[string]string `json:"tags,omitempty"`
	// Created is when EKS created the group.
	Created time.Time `json:"-"`
}

// Health lists the problems that EKS reports for a node group.
type Health struct {
	Issues []HealthIssue `json:"issues,omitempty"`
}

// HealthIssue is one problem: EKS's code, such as AsgInstanceLaunchFailures, and its message.
type HealthIssue struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// String joins the issues into one text.
func (h Health) String() string {
	var all []string
	for _, issue := range h.Issues {
		all = append(all, strings.TrimSuffix(issue.Code+": "+issue.Message, ": "))
	}
	return cmp.Or(strings.Join(all, "; "), "EKS does not say why")
}

// NodeGroupTaint is a taint with EKS's spelling of effects: NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE.
type NodeGroupTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Scaling is a node group's size in nodes.
type Scaling struct {
	Min     int `json:"minSize"`
	Max     int `json:"maxSize"`
	Desired int `json:"desiredSize"`
}

// Resources lists what EKS created for a node group.
type Resources struct {
	AutoScalingGroups []AutoScalingGroup `json:"autoScalingGroups,omitempty"`
}

// AutoScalingGroup is the Auto Scaling group behind a node group.
type AutoScalingGroup struct {
	Name string `json:"name"`
}

// Reservation is a capacity reservation or a capacity block.
type Reservation struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	// State is EC2's: active, scheduled, expired, ….
	State string `json:"state"`
	// Total and Free are numbers of instances.
	Total int `json:"total"`
	Free  int `json:"free"`
	// Ends is when it ends (RFC 3339) if that is within a week.
	Ends string `json:"ends,omitempty"`
}

// Image is an AMI.
type Image struct {
	ID string `json:"id"`
	// Owner is the account, and Alias is EC2's name for an owner, such as amazon.
	Owner string `json:"owner"`
	Alias string `json:"alias,omitempty"`
	// OfNodes means that it has the tag of images that nodes may run.
	OfNodes bool `json:"ofNodes,omitempty"`
	// Arch is its architecture as Kubernetes names it, and State what EC2 says of it if it is not available.
	Arch  string `json:"arch,omitempty"`
	State string `json:"state,omitempty"`
}

// Tagged is an EC2 resource and its tags.
type Tagged struct {
	ID   string `json:"id"`
	Zone string `json:"zone,omitempty"`
	// Owner is the account that owns the resource. In a shared VPC it is not the cluster's account.
	Owner string `json:"owner,omitempty"`
	// VPC is the VPC of the resource. A subnet that another account shares is in that account's VPC.
	VPC  string            `json:"vpc,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
}
