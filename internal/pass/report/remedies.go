package report

import (
	"cmp"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

const (
	again   = "The next event or the schedule tries again from here; if it fails in the same way, read the log of the step's function."
	goesOn  = "the next event or the schedule goes on from here"
	awsSlow = "AWS was slow or refused for its rate; nothing is lost, " + goesOn + ". " +
		"If it happens again, look at AWS's health and the account's quotas."
	aborted = "Nothing is lost: another pass goes on from here by itself, at the latest by the schedule. " +
		"To have Sawhorse leave the rack alone, set paused to true."
	crashed = "The function ran out of time or memory, or crashed: read its log at that time; " + goesOn + "."
)

// byReason has the remedies for causes that are recognized by a part of the reason, whatever the error's name is. The first
// one counts: the reason of a version of Karpenter that failed may have any text of the cluster in it.
var byReason = []struct{ part, remedy string }{
	{outcome.NeitherWorks, "No version of Karpenter's controller works: nodes and pods go on as they are, and no node is launched " +
		"or replaced. Look at the pods, events and log of the Deployment karpenter in kube-system; " + goesOn + "."},
	{outcome.TookBack, "Karpenter goes on in the version that it had, and nodes and pods have noticed nothing. " +
		"Correct what the reason names; the events of kube-system and docs/karpenter-versions.md help. " +
		"Then write karpenter_version again, also with the same value, or send Rack Reconcile Requested with \"force\": [\"version\"]: " +
		"until then this version is not tried again, and every other change goes on."},
	{"VcpuLimitExceeded", "The account's quota of vCPUs in this region is used up: ask for more " +
		"(Service Quotas, EC2, Running On-Demand or All Spot instances); " + goesOn + "."},
	{"InsufficientFreeAddressesInSubnet", "No subnet of the pool has a free address: name larger ones in subnet_ids, or free some; " +
		goesOn + "."},
	{"InsufficientInstanceCapacity", "EC2 has no such instance now in these zones: allow the pool more families, sizes or capacity types; " +
		goesOn + "."},
	{"ServiceLinkedRole", "EC2 lacks its service-linked role: `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com` " +
		"creates that of spot, once for the account; " + goesOn + "."},
	{"FailedCreatePodSandBox", "The node came, and its CNI gives pods no network: look at the DaemonSet aws-node on that node, " +
		"at the policies of the nodes' role, and at the free addresses of its subnet; " + goesOn + "."},
	{outcome.NotHandedOver, "Cluster Autoscaler and the build groups go on as before. Correct what Karpenter or EC2 says: " +
		"for Unauthorized, look for a service control policy or permissions boundary that denies it to the role of Karpenter's " +
		"controller; for a node that does not register, whether it reaches the API server (security groups, private endpoint) " +
		"and its image. Then " + goesOn + "."},
	{outcome.Unmade, "Cluster and node groups are as they were. Correct what EKS says of its update: for AccessDenied, the role of the " +
		"cluster or of its nodes; " + goesOn + "."},
	{"AccessDenied", missingRight},
	{"UnauthorizedOperation", missingRight},
	{outcome.NoAnswer, "The function cannot reach the API server. " + outcome.Reach +
		" If the cluster is being updated, the next pass goes on from here."},
}

const missingRight = "A right is missing: compare the function's role with the deployed stack (cdk diff), " +
	"and look for a service control policy or permissions boundary that denies the action."

// byError has the remedies by the error's name. All other errors have the remedy again.
var byError = map[string]string{
	Aborted:          aborted,
	TimedOut:         aborted,
	"States.Timeout": awsSlow,
	"Throttled":      awsSlow,
	"Unavailable": "AWS or the cluster's API server failed or did not answer, several times; " +
		"once it does, " + goesOn + ".",

	"Lambda.AWSLambdaException":              awsSlow,
	"Lambda.ClientExecutionTimeoutException": awsSlow,
	"Lambda.EC2ThrottledException":           awsSlow,
	"Lambda.EC2UnexpectedException":          awsSlow,
	"Lambda.ENINotReadyException":            awsSlow,
	"Lambda.SdkClientException":              awsSlow,
	"Lambda.ServiceException":                awsSlow,
	"Lambda.Unknown":                         crashed,
	"Runtime.ExitError":                      crashed,
	"Sandbox.Timedout":                       crashed,
	"Lambda.ENILimitReachedException": "The VPC has no quota left for network interfaces: raise it, or delete interfaces that nothing uses; " +
		goesOn + ".",
	"Lambda.SubnetIPAddressLimitReachedException": "The stack's subnets have no free addresses: " +
		"give the stack other subnets (subnetIds), or free addresses in these; " + goesOn + ".",
	"Lambda.ResourceConflictException": "The function was being deployed: wait until the deployment of the stack has ended; " + goesOn + ".",
	"Lambda.ResourceNotReadyException": "A function in a VPC that was not called for weeks takes some minutes to get ready; " + goesOn + ".",
	"Lambda.TooManyRequestsException": "Lambda had no room for another call, for minutes; " + goesOn + ". " +
		"If many events come in (executions of the state machine), see who puts them on the bus; " +
		"else raise the account's concurrency in Lambda, " +
		"or the deployment's reservedConcurrency, validateConcurrency or dryRunConcurrency (docs/deploy.md).",
}

// late has the remedies for a step that was not done within its deadline, by the step's name or its function.
var late = map[string]string{
	"access": "Look at the cluster's updates (`aws eks list-updates`), " +
		"and whether something else removes Sawhorse's access entries or their policies.",
	"autoscaler": "Look at the Deployment's pods and events. " +
		"If system nodes lack the label convox.io/system-node, see the step nodegroups/labels.",
	"change":     "Parameter Store refuses further writes: look at what else writes parameters in this account and region.",
	"controller": "Look at the pods, events and log of the Deployment in kube-system; an image that cannot be pulled is the usual cause.",
	"infrastructure": "If a role is still in an instance profile that Sawhorse did not make, take it out of that profile; " +
		"if AWS does not show what was created or deleted, look at AWS's health.",
	"nodegroups":           "Look at the node group's health and updates in EKS (`aws eks describe-nodegroup`).",
	"nodegroups/fit":       noRoom,
	"nodegroups/capacity":  noRoom,
	"nodegroups/placement": "Look at the Deployment's pods: the system nodes may be full.",
	"nodepools": "If a pool is not Ready, `kubectl describe ec2nodeclass` shows what is missing; " +
		"if nodes are draining, look at their pods and at the PodDisruptionBudgets.",
	"proof": "Karpenter's NodeClaims and events say why no node comes (`kubectl get events -A`).",
	"queue": "Look at AWS's health: SQS shows a new queue after seconds, and accepts a deleted queue's name again after 60 s.",
}

const noRoom = "Look at the system node groups' Auto Scaling activity: a quota, no capacity, or a subnet without addresses."

// remedy returns what an operator can do about a failed pass.
func remedy(event Event, reason string) string {
	for _, r := range byReason {
		if strings.Contains(reason, r.part) {
			return r.remedy
		}
	}
	if event.DryRun {
		return "Nothing was changed; ask again, and if it fails in the same way, read the log of the function validate."
	}
	if event.Error == statemachine.StepDeadlineExceeded {
		function, _, _ := strings.Cut(event.Step, "/")
		advice := cmp.Or(late[event.Step], late[function], "Look at the log of the step's function.")
		return "What the step waits for did not happen in time. " + advice + " " + "Once that is corrected, " + goesOn + "."
	}
	return cmp.Or(byError[event.Error], again)
}
