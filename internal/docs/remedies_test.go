package docs

import (
	"go/ast"
	"regexp"
	"strings"

	"github.com/sawhorse-io/sawhorse/statemachine"
)

// furtherRemedies are for sentences that do not say themselves what to do, by how they begin.
var furtherRemedies = map[string]string{
	"a disruption budget of ":                              "Nothing, if that is meant; else write a number or a share above 0, or give the budget a schedule.",
	"a hop limit of ":                                      "Write 1, unless pods on the node's network really need its credentials.",
	"NodePool <name> may have ":                            "Raise the limit, or let the workload shrink.",
	"cluster <name> has been deleted;":                     "Nothing; to use the rack's name again, write its parameters anew.",
	"cluster <cluster name> runs Kubernetes":               "Watch Karpenter's log after the upgrade, or keep the cluster at a version of that range.",
	"The cluster has NodePools that Sawhorse did not make": "Have another Karpenter take them over, or move the pods of their nodes elsewhere.",
	"<kind/namespace/name> is as it was before":            "Look at its pods (kubectl describe): they failed before Karpenter too, or what they need has changed.",
	"Karpenter's controller does not get ready":            "Nothing at once; look at the next status for instances that were ended so, and at the controller's log for why.",
	"build node group <name> still runs":                   "Nothing; the next pass goes on once the builds have ended.",
	"Karpenter had not ended these instances":              "Nothing is left to do in EC2; look for PodDisruptionBudgets that allow nothing before the next time.",
	"<kind/namespace/name> was not pinned":                 "Mend its pods; the next full pass pins it.",
	"Karpenter's nodes are drained although":               "Give the system groups, or others, more nodes; or stop those pods.",
	"nvidia_device_plugin_enable is true, but does":        "Nothing, if Karpenter is to be turned on later; else write false.",
	"rack <rack>: read records: a later version":           "Deploy the later version again; an earlier one leaves what it wrote alone.",
	"EventBridge refused it":                               "Look at the reason; a throttled call is repeated by the next pass.",
	"autoscaler: unknown state":                            reportIt,
	"controller: unknown part":                             reportIt,
	"step nodegroups has no part":                          reportIt,
	"release <name>: read: unknown format":                 reportIt,
	"rack <rack>: the status does not fit":                 reportIt,
	"function <function>: environment variable":            "Deploy the stack again, and change no function's environment by hand.",
	"release <name>: the plan wants version":               "Deploy again, if a deployment was stopped halfway; else wait for the next pass.",
	"release karpenter: its Deployment is gone":            "Find out who deletes it; the next pass installs it again.",
	"cluster <name>: rack <owner> has claimed it":          "Wait for the next pass; it says which rack has the cluster.",
	"node group <copy>: it is <status>":                    "Wait for the next pass.",
	"node group <group>: drain: its copy":                  "Wait for the next pass, and find out who deleted the copy.",
	"rack <rack>: change <id>: it has come":                "Wait for the next pass.",
	"rack <rack>: step <name>: there is no plan":           "Wait for the next pass.",
}

const reportIt = "Deploy again, if a deployment was stopped halfway; else report it as a bug, with the execution's history."

// lookAt says what to do where a step waits too long, by its package.
var lookAt = map[string]string{
	"access":         "Look at the cluster's updates (`aws eks list-updates`), and whether something else removes Sawhorse's access entries.",
	"admin":          "It is the steps access and controller that wait; look whether something else removes the policies of Sawhorse's access entries.",
	"autoscaler":     "Look at the Deployment's pods and events; a label that is missing on system nodes comes with the step nodegroups/labels.",
	"change":         "Nothing; it goes on by itself.",
	"controller":     "Look at the pods, events and log of the Deployment in kube-system; an image that cannot be pulled is the usual cause.",
	"infrastructure": "A role in an instance profile: look whose profile it is, and take the role out of it. The rest ends by itself; look at AWS's health where it does not.",
	"nodegroups":     "Look at the node group's health and updates in EKS (`aws eks describe-nodegroup`).",
	"nodepools":      "Not Ready: `kubectl describe ec2nodeclass` names what is missing. Draining: look at the pods and PodDisruptionBudgets of those nodes.",
	"pins":           "Look at the Deployment's pods: the system nodes may be full.",
	"queue":          "Nothing; SQS knows a new queue after some seconds, and gives a deleted one's name free after 60 s.",
	"room":           "Look at the system node groups' Auto Scaling activity: quota, capacity, or a subnet without addresses.",
}

const (
	awsSlow  = "Nothing; it is retried, and the next event or the schedule goes on from there. If it stays, look at AWS's health and at quotas."
	readLogs = "Read the function's log at that time: it ran out of time or memory, or crashed."
)

// failureRemedies say what to do about a failed pass, by the name of its error.
var failureRemedies = map[string]string{
	"StepDeadlineExceeded": "Look above for what the step waits for.",
	"StepFailed":           "Read the reason; the next event or the schedule tries again from there.",
	"Throttled":            awsSlow,
	"Unavailable":          "Once AWS or the API server answers, the next event or the schedule goes on from there.",
	"Rejected":             "It is no failure: the status is Rejected and names the problems; correct those.",
	"LeaseLost":            "Nothing; it is seen in an execution's history only, and the other pass goes on.",
	"States.Timeout":       awsSlow,
	"States.ALL":           "It is a pattern of the state machine and never seen in a status.",

	"DynamoDB.ConditionalCheckFailedException":    "Nothing; it says that the lease is another pass's, and is never seen in a status.",
	"Lambda.AWSLambdaException":                   awsSlow,
	"Lambda.ClientExecutionTimeoutException":      awsSlow,
	"Lambda.EC2ThrottledException":                awsSlow,
	"Lambda.EC2UnexpectedException":               awsSlow,
	"Lambda.ENILimitReachedException":             "Raise the quota of network interfaces in the VPC, or delete those that nothing uses; the next event or the schedule goes on from there.",
	"Lambda.ENINotReadyException":                 awsSlow,
	"Lambda.ResourceConflictException":            "Wait until the deployment of the stack has ended; the next event or the schedule goes on from there.",
	"Lambda.ResourceNotReadyException":            "Nothing; a function in a VPC that nobody called for weeks takes some minutes to be ready, and the next event or the schedule goes on from there.",
	"Lambda.SubnetIPAddressLimitReachedException": "Give the stack subnets with free addresses (subnetIds), or free some in those that it has.",
	"Lambda.SdkClientException":                   awsSlow,
	"Lambda.ServiceException":                     awsSlow,
	"Lambda.TooManyRequestsException":             "Raise the account's Lambda concurrency, if it stays.",
	"Lambda.Unknown":                              readLogs,
	"Runtime.ExitError":                           readLogs,
	"Sandbox.Timedout":                            readLogs,
}

var errorEquals = regexp.MustCompile(`"((?:States|Lambda|Sandbox|Runtime|DynamoDB)\.[A-Za-z0-9]+)"`)

// errorNames are the names of errors with what they mean: ours as their constants' comments say, and those of AWS that the state
// machine handles by name.
func (s *source) errorNames() map[string]string {
	all := map[string]string{}
	for _, match := range errorEquals.FindAllStringSubmatch(statemachine.Definition, -1) {
		all[match[1]] = "AWS's own."
	}
	for _, f := range s.files {
		if f.path != "statemachine/errors.go" {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				said := strings.Join(strings.Fields(spec.Doc.Text()), " ")
				all[spec.Names[0].Name] = strings.TrimPrefix(said, spec.Names[0].Name+" ")
			}
			return true
		})
	}
	return all
}
