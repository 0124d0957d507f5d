package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Facts are what was observed of a rack before the plan: in AWS and in the rack's own records. All of it is optional for
// the command line; what is absent was not observed.
type Facts struct {
	// Offline tells that nobody has looked: what is absent is unknown, and no problem.
	Offline bool          `json:"-"`
	Cluster *ClusterFacts `json:"cluster,omitempty"`
	// Lost is the cluster as the rack knew it, where EKS no longer does. It is nothing else that has not been found.
	Lost           *Cluster    `json:"lost,omitempty"`
	NodeGroups     []NodeGroup `json:"nodegroups,omitempty"`
	Subnets        []Tagged    `json:"subnets,omitempty"`
	SecurityGroups []Tagged    `json:"securityGroups,omitempty"`
	PodIdentity    bool        `json:"podIdentityAgent,omitempty"`
	OIDCProvider   bool        `json:"oidcProvider,omitempty"`
	// OIDCWithoutSTS tells that the OIDC provider lacks the client id sts.amazonaws.com, so that STS refuses its tokens.
	OIDCWithoutSTS bool `json:"oidcProviderWithoutSTS,omitempty"`
	// SystemPolicies are the ARNs of the policies that are attached to the roles of the system node groups.
	SystemPolicies []string `json:"systemPolicies,omitempty"`
	// Architectures of instance types that Karpenter does not know, as EC2 says: amd64 or arm64.
	Architectures map[string]string `json:"architectures,omitempty"`
	// Pools is what runs now, by NodePool.
	Pools map[string]PoolFacts `json:"pools,omitempty"`
	// NodeClaims are those of the cluster, as Kubernetes has them; nil where nobody has looked.
	NodeClaims []Object `json:"nodeclaims,omitempty"`
	// Foreign are resources that have a name of ours but not both our marks, in the words of a Problem.
	Foreign []string `json:"foreign,omitempty"`
	// Records is what the rack's own records say.
	Records Records `json:"records"`
	// Deployment is what the deployment of Sawhorse lets racks do.
	Deployment Deployment `json:"-"`
}

// Deployment is what whoever deployed the stack lets the writers of parameters do, by its context values.
type Deployment struct {
	// RequireClusterTag wants the owner of a cluster to have let the rack in, by a tag on the cluster.
	RequireClusterTag bool
	// ImageRepositories may hold the image of Karpenter's controller, beside its own: exact ones, and beginnings that end in /*. None: the
	// account's own ECR.
	ImageRepositories []string
	// SystemNamespaces are those whose Deployments may be pinned to system nodes, beside kube-system and the rack's own.
	SystemNamespaces []string
	// ObjectPrefixes are where the objects of JSON parameters may lie: s3://bucket/prefix.
	ObjectPrefixes []string
	// ObjectOwners are the accounts whose buckets are read there: a bucket that has been deleted may come back as somebody else's.
	ObjectOwners []string
	// NodeRoles are the roles that a copy of a node group may be given: names behind their paths, with * for anything.
	NodeRoles []string
}

// mayHand tells whether a copy of a node group may be given the role of this ARN.
func (d Deployment) mayHand(role string) bool {
	_, name, _ := strings.Cut(role, ":role/")
	return slices.ContainsFunc(d.NodeRoles, func(pattern string) bool {
		whole, err := regexp.MatchString("^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")+"$", name)
		return err == nil && whole
	})
}

// PoolFacts is what runs in one NodePool: the number of its nodes, and their capacity together as Kubernetes quantities.
type PoolFacts struct {
	Nodes  int    `json:"nodes"`
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// Records are what Sawhorse itself noted about the rack in earlier passes.
type Records struct {
	// Claim is the rack that the cluster belongs to, if any.
	Claim string `json:"claim,omitempty"`
	// Goal is how far an accepted plan has ever taken the rack; GoalNone on a new one. With GoalKarpenter, Karpenter is on or was being turned on.
	Goal Goal `json:"goal,omitempty"`
	// WasOn is true from the first accepted plan with Karpenter until its removal is complete.
	WasOn bool `json:"wasOn,omitempty"`
	// Credentials is "podidentity" or "irsa" once chosen; the choice is kept.
	Credentials string `json:"credentials,omitempty"`
	// Checked tells which manifests of the pools were good: the same ones need no check again.
	Checked string `json:"checked,omitempty"`
	// Applied is the fingerprint of each step that was last done.
	Applied map[string]string `json:"applied,omitempty"`
	// Warnings are what each step warned of when it was last done; true until it is taken again.
	Warnings map[string][]params.Problem `json:"-"`
	// Emptied are the sizes that the build groups had before Sawhorse emptied them, by name, where they are to go back to them.
	Emptied map[string]Scaling `json:"-"`
	// Params are the parameters of the last accepted plan, as written.
	Params map[string]string `json:"params,omitempty"`
}

// ClusterFacts is what DescribeCluster says.
type ClusterFacts struct {
	Cluster
	Status   string `json:"status"`
	Version  string `json:"version"`
	AuthMode string `json:"authMode"`
	AutoMode bool   `json:"autoMode,omitempty"`
	// Tags are the cluster's own; nil where nobody has looked (Offline).
	Tags map[string]string `json:"tags,omitempty"`
}

// NodeGroup has the shape of EKS's DescribeNodegroup answer.
type NodeGroup struct {
	Name string `json:"nodegroupName"`
	// Status is EKS's: ACTIVE, UPDATING, DEGRADED, DELETING, CREATE_FAILED, …; "" counts as ACTIVE.
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
	// SecurityGroups are those of the group's nodes where it does not use the cluster security group alone.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	NodeRole       string   `json:"nodeRole,omitempty"`
	// LostTemplate is the launch template and version that the group was made from, where EC2 no longer has it: "lt-1 version 3".
	// EKS cannot launch further nodes of the group, and their security groups are unknown.
	LostTemplate string `json:"lostTemplate,omitempty"`
	// Tags tell a copy that Sawhorse made in the place of another group.
	Tags map[string]string `json:"tags,omitempty"`
}

// Health is what EKS finds wrong with a node group.
type Health struct {
	Issues []HealthIssue `json:"issues,omitempty"`
}

// HealthIssue is one thing that is wrong: EKS's code, such as AsgInstanceLaunchFailures, and its sentence.
type HealthIssue struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// String is the issues as EKS tells them.
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

// Scaling is a node group's size, in nodes.
type Scaling struct {
	Min     int `json:"minSize"`
	Max     int `json:"maxSize"`
	Desired int `json:"desiredSize"`
}

// Resources are what EKS made for a node group.
type Resources struct {
	AutoScalingGroups []AutoScalingGroup `json:"autoScalingGroups,omitempty"`
}

// AutoScalingGroup is the EC2 group behind a node group.
type AutoScalingGroup struct {
	Name string `json:"name"`
}

// Tagged is an EC2 resource and its tags.
type Tagged struct {
	ID   string `json:"id"`
	Zone string `json:"zone,omitempty"`
	// Owner is the account that the resource belongs to: in a shared VPC it is not the cluster's.
	Owner string            `json:"owner,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
}
