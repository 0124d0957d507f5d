package plan

import "github.com/sawhorse-io/sawhorse/internal/ownership"

// Access describes the cluster's authentication mode, and the rights of Sawhorse's functions in it.
type Access struct {
	// Mode is the desired authentication mode: API if the cluster has it already, else API_AND_CONFIG_MAP.
	Mode string `json:"mode,omitempty"`
	// Rights has the rules of the ClusterRole of each function. A function that is not in it is a cluster admin.
	Rights map[string][]Right `json:"rights,omitempty"`
	// Namespace is the manifest of the namespace in which the function proof creates its pods.
	Namespace Object `json:"namespace,omitempty"`
}

// Right allows verbs on one kind of object, in one namespace or, if Namespace is empty, in all.
type Right struct {
	Group     string   `json:"group"`
	Resource  string   `json:"resource"`
	Verbs     []string `json:"verbs"`
	Namespace string   `json:"namespace,omitempty"`
}

// rights lists what each function may do in the cluster. access and controller are missing because EKS makes them
// cluster admins: access grants rights, and controller installs a chart that grants rights.
var rights = map[string][]Right{
	"validate": {
		right("karpenter.sh", "nodepools", "list"),  // what runs in them, for the warnings about limits
		right("karpenter.sh", "nodeclaims", "list"), // which nodes a change replaces
		right("", "pods", "list"),                   // how many run in a pool that is removed, or in a node group that is emptied
		right("", "nodes", "list"),                  // which of them are a node group's
		// What others have, where a change would be refused because of it later: Cluster Autoscaler, a device plugin, the PriorityClass
		// that is named, a CRD that another version of Karpenter brings.
		right("apps", "deployments", "list"),
		right("apps", "daemonsets", "get"),
		right("scheduling.k8s.io", "priorityclasses", "get"),
		right("apiextensions.k8s.io", "customresourcedefinitions", "get"),
	},
	"nodepools": {
		right("karpenter.sh", "nodepools", "get", "list", "create", "patch", "delete"),
		right("karpenter.k8s.aws", "ec2nodeclasses", "get", "list", "create", "patch", "delete"),
		right("karpenter.sh", "nodeoverlays", "get", "list", "create", "patch", "delete"),
		// drain windows, and claims that Karpenter does not terminate in time
		right("karpenter.sh", "nodeclaims", "list", "patch", "delete"),
		// the taint of nodes whose pool is removed, and nodes of terminated instances
		right("", "nodes", "list", "patch", "delete"),
		right("", "pods", "list"), // which of those that were drained have no node
	},
	// Neither right can be limited to names: Cluster Autoscaler is found by its image, in any namespace and under any
	// name, and a parameter names the system Deployments.
	"autoscaler": {
		right("apps", "deployments", "list", "update"),
		right("", "nodes", "list"),
		right("", "pods", "list"), // whether those that were handed over find room on system nodes
	},
	"proof": {
		right("apps", "deployments", "list"), // whether Cluster Autoscaler still scales
		right("", "nodes", "list"),
		right("karpenter.sh", "nodeclaims", "list"),
		rightIn(ownership.ProofNamespace, "pods", "list", "create", "delete"),
		rightIn(ownership.ProofNamespace, "events", "list"),
		rightIn(eventNamespace, "events", "list"),
	},
	"nodegroups": {
		right("apps", "deployments", "list", "update"),
		right("", "pods", "list"),
		right("", "pods/eviction", "create"),            // evicts from system node groups that are replaced or emptied
		right("", "nodes", "list", "update"),            // cordons the nodes of build groups, and of replaced and emptied groups
		right("policy", "poddisruptionbudgets", "list"), // which pods may be evicted from a group that is emptied
		right("karpenter.sh", "nodepools", "list"),      // the pools whose pods need capacity elsewhere
	},
	"rollout": {
		right("karpenter.sh", "nodepools", "list"),
		right("karpenter.sh", "nodeclaims", "list"),
		right("karpenter.k8s.aws", "ec2nodeclasses", "list"),
		right("", "events", "list"), // what Karpenter says of a node that stays
		right("", "nodes", "list"),  // those of emptied node groups, and those that use up budgets
		right("", "pods", "list"),
		right("policy", "poddisruptionbudgets", "list"),
	},
	// Everything that a step reads, and every object that a step applies. Those of Karpenter's chart are listed too: one that
	// the plan does not have any more is deleted. Not Secrets.
	"audit": {
		right("karpenter.sh", "nodepools", "get", "list"),
		right("karpenter.sh", "nodeclaims", "list"),
		right("karpenter.k8s.aws", "ec2nodeclasses", "get", "list"),
		right("karpenter.sh", "nodeoverlays", "get", "list"),
		right("apps", "deployments", "get", "list"),
		right("apps", "daemonsets", "get"),
		right("", "nodes", "list"),
		right("", "pods", "list"),
		right("", "namespaces", "get"),
		rightIn(ownership.ProofNamespace, "events", "list"),
		rightIn(eventNamespace, "events", "list"),
		right("", "services", "get", "list"),
		right("", "serviceaccounts", "get", "list"),
		right("policy", "poddisruptionbudgets", "get", "list"),
		right("monitoring.coreos.com", "servicemonitors", "get", "list"),
		right("scheduling.k8s.io", "priorityclasses", "get"), // audits and dry runs judge a change as validate does
		right("apiextensions.k8s.io", "customresourcedefinitions", "get"),
		right("rbac.authorization.k8s.io", "clusterroles", "get", "list"),
		right("rbac.authorization.k8s.io", "clusterrolebindings", "get", "list"),
		right("rbac.authorization.k8s.io", "roles", "get", "list"),
		right("rbac.authorization.k8s.io", "rolebindings", "get", "list"),
	},
}

// Rights returns what each function may do in the cluster.
func Rights() map[string][]Right { return rights }

func right(group, resource string, verbs ...string) Right { return Right{group, resource, verbs, ""} }

// rightIn returns a right in one namespace.
func rightIn(namespace, resource string, verbs ...string) Right {
	return Right{"", resource, verbs, namespace}
}

// eventNamespace has the events about objects without a namespace, such as NodeClaims.
const eventNamespace = "default"
