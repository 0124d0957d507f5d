package gateway

import "regexp"

type route struct {
	service, method string
	path            *regexp.Regexp
	action          string
}

// routes names the REST calls that tests and people are interested in. Other calls are counted by method and path.
var routes = []route{
	eks("POST", ``, "CreateCluster"),
	eks("GET", ``, "ListClusters"),
	eks("GET", `/[^/]+`, "DescribeCluster"),
	eks("DELETE", `/[^/]+`, "DeleteCluster"),
	eks("POST", `/[^/]+/update-config`, "UpdateClusterConfig"),
	eks("GET", `/[^/]+/updates`, "ListUpdates"),
	eks("GET", `/[^/]+/updates/[^/]+`, "DescribeUpdate"),
	eks("POST", `/[^/]+/node-groups`, "CreateNodegroup"),
	eks("GET", `/[^/]+/node-groups`, "ListNodegroups"),
	eks("GET", `/[^/]+/node-groups/[^/]+`, "DescribeNodegroup"),
	eks("DELETE", `/[^/]+/node-groups/[^/]+`, "DeleteNodegroup"),
	eks("POST", `/[^/]+/node-groups/[^/]+/update-config`, "UpdateNodegroupConfig"),
	eks("POST", `/[^/]+/addons`, "CreateAddon"),
	eks("GET", `/[^/]+/addons`, "ListAddons"),
	eks("GET", `/[^/]+/addons/[^/]+`, "DescribeAddon"),
	eks("DELETE", `/[^/]+/addons/[^/]+`, "DeleteAddon"),
	eks("POST", `/[^/]+/addons/[^/]+/update`, "UpdateAddon"),
	eks("POST", `/[^/]+/pod-identity-associations`, "CreatePodIdentityAssociation"),
	eks("GET", `/[^/]+/pod-identity-associations`, "ListPodIdentityAssociations"),
	eks("GET", `/[^/]+/pod-identity-associations/[^/]+`, "DescribePodIdentityAssociation"),
	eks("POST", `/[^/]+/pod-identity-associations/[^/]+`, "UpdatePodIdentityAssociation"),
	eks("DELETE", `/[^/]+/pod-identity-associations/[^/]+`, "DeletePodIdentityAssociation"),
	eks("POST", `/[^/]+/access-entries`, "CreateAccessEntry"),
	eks("GET", `/[^/]+/access-entries`, "ListAccessEntries"),
	// A principal's ARN has slashes, so the policies' paths must come before the path of the entry itself.
	eks("POST", `/[^/]+/access-entries/.+/access-policies`, "AssociateAccessPolicy"),
	eks("GET", `/[^/]+/access-entries/.+/access-policies`, "ListAssociatedAccessPolicies"),
	eks("DELETE", `/[^/]+/access-entries/.+/access-policies/.+`, "DisassociateAccessPolicy"),
	eks("GET", `/[^/]+/access-entries/.+`, "DescribeAccessEntry"),
	eks("POST", `/[^/]+/access-entries/.+`, "UpdateAccessEntry"),
	eks("DELETE", `/[^/]+/access-entries/.+`, "DeleteAccessEntry"),
	{"eks", "GET", regexp.MustCompile(`^/tags/.+$`), "ListTagsForResource"},
	{"eks", "POST", regexp.MustCompile(`^/tags/.+$`), "TagResource"},
	{"eks", "DELETE", regexp.MustCompile(`^/tags/.+$`), "UntagResource"},
	{"lambda", "POST", regexp.MustCompile(`^/2015-03-31/functions/[^/]+/invocations$`), "Invoke"},
}

func eks(method, path, action string) route {
	return route{"eks", method, regexp.MustCompile(`^/clusters` + path + `$`), action}
}

func restAction(service, method, path string) string {
	for _, r := range routes {
		if r.service == service && r.method == method && r.path.MatchString(path) {
			return r.action
		}
	}
	if service == "s3" {
		return method // separate counts for each object would not be useful
	}
	return method + " " + path
}
