package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// settings are the context values of a deployment (`cdk deploy -c key=value`, or "context" in cdk.json).
type settings struct {
	// StackName (stackName) begins the names of the functions and of the state machine.
	StackName string
	// Architecture (architecture) of the functions: arm64 or x86_64. Dist (dist) holds their zips: {dist}/{architecture}/{function}.zip.
	Architecture, Dist string
	// Prefix (prefix) is the root of the parameter tree, BusName (busName) the event bus.
	Prefix, BusName string
	// Table (table) is the table of an earlier stack to go on with; none: the stack makes its own.
	Table string
	// SettleSeconds (settleSeconds) is how long a pass waits for a burst of writes to end.
	SettleSeconds int
	// ResyncMinutes (resyncMinutes) is the interval of the full passes, ResyncSlots (resyncSlots) the number of ticks they are spread over.
	ResyncMinutes, ResyncSlots int
	// DrainSeconds (drainSeconds) is how long nodes may drain when Karpenter is turned off, and those of a node group that is
	// replaced.
	DrainSeconds int
	// PodIdentityDelaySeconds (podIdentityDelaySeconds) is how old the credentials of Karpenter's controller must be before it is
	// installed: pods get them only when they are admitted, and EKS learns of an association some seconds after it was made.
	PodIdentityDelaySeconds int
	// AlarmTopicARN (alarmTopicArn) is the SNS topic for alarms; none: alarms only show.
	AlarmTopicARN string
	// SubnetIDs and SecurityGroupIDs (subnetIds, securityGroupIds) put the functions that talk to clusters into a VPC, for
	// private clusters.
	SubnetIDs, SecurityGroupIDs []string
	// Endpoints (vpcEndpoints) are the VPC endpoints to create for them, by service name, in VPCID (vpcId); RouteTableIDs
	// (routeTableIds) are for those of gateways.
	Endpoints     []string
	VPCID         string
	RouteTableIDs []string
	// ReservedConcurrency (reservedConcurrency) is how many calls at once each function that writes to EKS or IAM may have and
	// always has; 0 reserves none.
	ReservedConcurrency int
	// ValidateConcurrency (validateConcurrency) is the same for the function validate, which every pass and every dry run calls: a
	// flood of events takes no more of the account's calls than that.
	ValidateConcurrency int
	// OperatorRacks (operatorRacks) are the racks that the policy for operators is about; of many there are several policies.
	OperatorRacks []string
	// NodeActions (nodeActions) are what the roles of nodes may do beyond Karpenter's own needs: what their boundary lets through
	// of policies that racks attach with node_policy_arns. KMS's are let through for Karpenter's controllers too: EC2 uses the keys
	// of nodes' volumes in the name of the role that launches them.
	NodeActions []string
	// NodeRoles (nodeRoles) are the roles that on-demand copies of SPOT node groups may be given: names, with their paths, and * for
	// anything; none: no group is replaced.
	NodeRoles []string
	// RequireClusterTag (requireClusterTag) lets racks into clusters only that carry the tag sawhorse.dev/rack with the rack's name.
	RequireClusterTag bool
	// ImageRepositories (imageRepositories) may hold the image of Karpenter's controller, beside its own: exact ones, and beginnings that
	// end in /*. None: the account's ECR.
	ImageRepositories []string
	// SystemNamespaces (systemNamespaces) are those whose Deployments racks may pin to system nodes, beside kube-system and their own.
	SystemNamespaces []string
	// ObjectPrefixes (objectPrefixes) are where JSON parameters may be read from: s3://bucket/prefix.
	ObjectPrefixes []string
	// ObjectAccounts (objectAccounts) are the accounts beside the stack's own whose buckets may be read there.
	ObjectAccounts []string
	// LogRetentionDays (logRetentionDays) is how long logs are kept. RetainLogs (logRemoval=retain, default destroy) keeps them when the
	// stack goes; a stack of the same name is refused then until they are deleted.
	LogRetentionDays int
	RetainLogs       bool
	// Destroy (removal=destroy, default retain) deletes the table and the permissions boundaries with the stack.
	Destroy bool
	// CLICredentials (synthesizer=cli, default default) deploys with the caller's own credentials, not CDK's bootstrap roles.
	CLICredentials bool
}

var (
	stackNames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,39}$`)
	busNames   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,256}$`)
	prefixes   = regexp.MustCompile(`^(/[A-Za-z0-9_.-]+)+$`)
	actions    = regexp.MustCompile(`^[a-z0-9-]+:([A-Za-z0-9]+\*?|\*)$`)
	namespaces = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// The slash before * ends a name: without it, example.com/team* would also be example.com/team-of-others/x.
	repositories = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*/([a-z0-9]([a-z0-9._-]*[a-z0-9])?|\*)$`)
	// The slash ends the bucket's name: without it, s3://config would also be s3://config-of-others. No *, ? or $, which mean
	// something in a policy, and no comma, which ends a prefix in the function's environment.
	objects = regexp.MustCompile(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[A-Za-z0-9!_.'()/=@+-]*$`)
)

// readSettings reads all settings. get gives a context value, nil where there is none.
func readSettings(get func(key string) any) (settings, error) {
	r := &reader{get: get}
	s := settings{
		StackName:               r.match("stackName", "Sawhorse", stackNames),
		Architecture:            r.oneOf("architecture", "arm64", "x86_64"),
		Dist:                    r.text("dist", "dist"),
		Prefix:                  r.match("prefix", names.DefaultPrefix, prefixes),
		BusName:                 r.match("busName", names.Bus, busNames),
		Table:                   r.table(),
		SettleSeconds:           r.number("settleSeconds", 5, 0, 60), // well inside the lease's 180 s
		ResyncMinutes:           r.number("resyncMinutes", 60, 1, 1440),
		ResyncSlots:             r.number("resyncSlots", 12, 1, 1440),
		DrainSeconds:            r.number("drainSeconds", 300, 0, names.MaxDrainSeconds),
		PodIdentityDelaySeconds: r.number("podIdentityDelaySeconds", 15, 0, 60),

		AlarmTopicARN:    r.text("alarmTopicArn", ""),
		SubnetIDs:        r.list("subnetIds"),
		SecurityGroupIDs: r.list("securityGroupIds"),
		Endpoints:        r.endpoints(),
		VPCID:            r.text("vpcId", ""),
		RouteTableIDs:    r.list("routeTableIds"),
		OperatorRacks:    r.operatorRacks(),
		NodeActions:      r.nodeActions(),
		NodeRoles:        r.matching("nodeRoles", rolePatterns, "a role's name behind its path, if it has one, with * for anything but not for all of it, like eksctl-*-NodeInstanceRole-*"),

		ReservedConcurrency: r.number("reservedConcurrency", 0, 0, 1000),
		ValidateConcurrency: r.number("validateConcurrency", 0, 0, 1000),

		LogRetentionDays: r.retention("logRetentionDays", 30),
		RetainLogs:       r.oneOf("logRemoval", "destroy", "retain") == "retain",

		RequireClusterTag: r.oneOf("requireClusterTag", "true", "false") == "true",

		ImageRepositories: r.matching("imageRepositories", repositories, "an image repository without a tag, like 123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter/controller, or the beginning of some and /*"),
		SystemNamespaces:  r.matching("systemNamespaces", namespaces, "the name of a namespace, like ingress"),

		ObjectPrefixes: r.matching("objectPrefixes", objects, "s3://bucket/prefix, like s3://example-config/racks/, without wildcards (a whole bucket is s3://bucket/)"),
		ObjectAccounts: r.matching("objectAccounts", accountIDs, "the id of an AWS account, twelve digits (as text: a number loses zeros in front)"),
		Destroy:        r.oneOf("removal", "retain", "destroy") == "destroy",
		CLICredentials: r.oneOf("synthesizer", "default", "cli") == "cli",
	}
	if strings.HasPrefix(s.Prefix, "/aws") || strings.HasPrefix(s.Prefix, "/ssm") {
		r.fail("prefix", s.Prefix, "a path that does not begin with aws or ssm, which Parameter Store keeps for itself")
	}
	if s.ResyncSlots > 0 && s.ResyncMinutes%s.ResyncSlots != 0 {
		r.fail("resyncSlots", strconv.Itoa(s.ResyncSlots), fmt.Sprintf("a divisor of resyncMinutes, %d: a tick is a whole number of minutes", s.ResyncMinutes))
	}
	if (len(s.SubnetIDs) == 0) != (len(s.SecurityGroupIDs) == 0) {
		r.fail("subnetIds", strings.Join(s.SubnetIDs, ","), "given together with securityGroupIds, or neither of them")
	}
	if n := len(s.operatorPolicies()); n > policiesEach {
		r.fail("operatorRacks", fmt.Sprintf("%d names", len(s.OperatorRacks)), fmt.Sprintf("short enough for %d managed policies, which is what IAM lets a role or user have, and not for %d; "+
			"the beginning of names and *, like team-a-*, stands for many", policiesEach, n))
	}
	r.checkEndpoints(s)
	return s, errors.Join(r.errs...)
}

// zip is the path of a function's code.
func (s settings) zip(function string) string {
	return filepath.Join(s.Dist, s.Architecture, function+".zip")
}

// checkZips tells in one sentence what the CDK would say with a stack trace.
func (s settings) checkZips() error {
	for _, f := range functions {
		if _, err := os.Stat(s.zip(f.name)); err != nil {
			return fmt.Errorf("function %s: no %s: run `make build` first", f.name, s.zip(f.name))
		}
	}
	return nil
}
