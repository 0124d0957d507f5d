package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// settings are the context values of a deployment (`cdk deploy -c key=value`, or "context" in cdk.json).
type settings struct {
	// StackName (stackName) is the prefix of the names of the functions and of the state machine.
	StackName string
	// Architecture (architecture) is the architecture of the functions: arm64 or x86_64. Dist (dist) is the folder of
	// their zips: {dist}/{architecture}/{function}.zip.
	Architecture, Dist string
	// Prefix (prefix) is the root of the parameter tree, BusName (busName) the event bus.
	Prefix, BusName string
	// Table (table) is the name of an earlier stack's table, which this stack uses. If it is empty, the stack creates its
	// own.
	Table string
	// DebounceSeconds (debounceSeconds) is how long a pass waits for a burst of writes to end.
	DebounceSeconds int
	// ResyncMinutes (resyncMinutes) is the interval of the audits, ResyncSlots (resyncSlots) the number of ticks over which
	// they are spread: one a minute, which is as often as the Scheduler calls.
	ResyncMinutes, ResyncSlots int
	// RolloutMinutes (rolloutMinutes) is the time between two node checks of all racks with Karpenter.
	RolloutMinutes int
	// ProofSeconds (proofSeconds) is how long a pool may take for its first node, before anything is handed over to it.
	ProofSeconds int
	// DrainSeconds (drainSeconds) is how long nodes may drain when Karpenter is turned off or when their
	// node group is replaced.
	DrainSeconds int
	// PodIdentityDelaySeconds (podIdentityDelaySeconds) is the minimum age of the role and the Pod Identity
	// association of Karpenter's controller when the controller is installed. Pods get credentials only at admission,
	// and an association takes effect some seconds after its creation.
	PodIdentityDelaySeconds int
	// AlarmTopicARN (alarmTopicArn) is the SNS topic for alarms. If it is empty, alarms are only displayed.
	AlarmTopicARN string
	// SubnetIDs and SecurityGroupIDs (subnetIds, securityGroupIds) place the functions that call clusters in a VPC, for
	// private clusters.
	SubnetIDs, SecurityGroupIDs []string
	// Endpoints (vpcEndpoints) are the VPC endpoints to create for these functions, by service name, in VPCID (vpcId).
	// RouteTableIDs (routeTableIds) are for gateway endpoints.
	Endpoints     []string
	VPCID         string
	RouteTableIDs []string
	// ReservedConcurrency (reservedConcurrency) is the reserved concurrency, and therefore the maximum, of each
	// function that writes to EKS or IAM. 0 reserves none.
	ReservedConcurrency int
	// ValidateConcurrency (validateConcurrency) is the same for the functions validate and audit, one of which every pass
	// calls. It limits the share of the account's concurrency that a flood of events can use.
	ValidateConcurrency int
	// DryRunConcurrency (dryRunConcurrency) is the same for the function dryrun. It is reserved by default, so that a flood
	// of dry runs delays dry runs only.
	DryRunConcurrency int
	// OperatorRacks (operatorRacks) are the racks in the policy for operators. Many racks are
	// split over several policies.
	OperatorRacks []string
	// NodeActions (nodeActions) are actions that the roles of nodes may use beyond Karpenter's own needs. Their
	// boundary allows these actions for policies that racks attach with node_policy_arns. KMS actions are also
	// allowed for Karpenter's controllers, because EC2 uses the keys of nodes' volumes on behalf of the role
	// that launches the nodes.
	NodeActions []string
	// NodeRoles (nodeRoles) are the roles that ON_DEMAND copies of SPOT node groups may get: names with their paths,
	// with * as a wildcard. If it is empty, no group is replaced.
	NodeRoles []string
	// RolePath (rolePath) is the path of the stack's roles, and the beginning of that of the roles that Sawhorse creates. Empty
	// is the same as "/".
	RolePath string
	// BoundaryARN (boundaryArn) is a managed policy that is the permissions boundary of all roles, in place of the stack's own.
	BoundaryARN string
	// NodePolicies (nodePolicyArns) are the managed policies that node_policy_arns may name then.
	NodePolicies []string
	// FIPS and DualStack (fips, dualStack) have the functions call such endpoints of AWS.
	FIPS, DualStack bool
	// RequireClusterTag (requireClusterTag) admits racks only to clusters whose tag sawhorse.dev/rack
	// has the rack's name.
	RequireClusterTag bool
	// ImageRepositories (imageRepositories) may contain the image of Karpenter's controller where its digest is not known,
	// in addition to Karpenter's own repository: exact names, and prefixes that end in /*.
	ImageRepositories []string
	// ImageOwners (imageOwners) are the owners, in addition to Amazon, whose images Karpenter's nodes may run: accounts, or
	// aws-marketplace, which is the owner of what is sold there. Of the stack's own account they may run images with the tag
	// sawhorse.dev/nodes, or all if the account is listed.
	ImageOwners []string
	// SystemNamespaces (systemNamespaces) are the namespaces whose Deployments racks may place on system nodes, in
	// addition to kube-system and their own.
	SystemNamespaces []string
	// Proxies (proxies) are the proxies that racks may give Karpenter's controller (HTTPS_PROXY), and the hosts and
	// networks that it may reach without one (the elements of NO_PROXY).
	Proxies []string
	// ObjectPrefixes are the prefixes from which JSON parameters may be read. Those of objectPrefixes contain {rack}, which
	// is the name of the rack that reads. Every rack reads below those of sharedObjectPrefixes.
	ObjectPrefixes []string
	// ObjectAccounts (objectAccounts) are the accounts whose buckets may be read, in addition to the stack's own.
	ObjectAccounts []string
	// LogRetentionDays (logRetentionDays) is how long logs are kept. RetainLogs (logRemoval=retain, default destroy)
	// keeps them when the stack is deleted. A stack of the same name cannot be deployed then until they are deleted.
	LogRetentionDays int
	RetainLogs       bool
	// Destroy (removal=destroy, default retain) deletes the table and the permissions boundaries with the stack.
	Destroy bool
	// CLICredentials (synthesizer=cli, default default) deploys with the caller's own credentials instead of the CDK's
	// bootstrap roles.
	CLICredentials bool
}

var (
	stackNames  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,39}$`)
	busNames    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,256}$`)
	prefixes    = regexp.MustCompile(`^(/[A-Za-z0-9_.-]+)+$`)
	actions     = regexp.MustCompile(`^[a-z0-9-]+:([A-Za-z0-9]+\*?|\*)$`)
	imageOwners = regexp.MustCompile(`^([0-9]{12}|aws-marketplace)$`)
	namespaces  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// The slash before * ends a name. Without it, example.com/team* would also match example.com/team-of-others/x.
	repositories = regexp.MustCompile(
		`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*/([a-z0-9]([a-z0-9._-]*[a-z0-9])?|\*)$`)
	// A password would be in plain text in the parameter, and $ begins a variable in the container's environment.
	proxies = regexp.MustCompile(`^(https?://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/?|[A-Za-z0-9.*:\[][A-Za-z0-9.*:\]-]*(/[0-9]{1,3})?)$`)
	// The slash ends the bucket's name. Without it, s3://config would also match s3://config-of-others. *,
	// ? and $ are excluded because they have a meaning in a policy, and the comma because it ends a prefix
	// in the function's environment.
	objects = regexp.MustCompile(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[A-Za-z0-9!_.'()/=@+-]*$`)
	// {rack} is a whole part of the path. Without the slash after it, rack r would also match what is below r-2/.
	rackObjects = regexp.MustCompile(
		`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/([A-Za-z0-9!_.'()=@+-]+/)*\{rack\}/[A-Za-z0-9!_.'()/=@+-]*$`)
)

// readSettings reads and checks all settings. get returns a context value, or nil if the value is not set.
func readSettings(get func(key string) any) (settings, error) {
	r := &reader{get: get}
	s := settings{
		StackName:               r.match("stackName", "Sawhorse", stackNames),
		Architecture:            r.oneOf("architecture", "arm64", "x86_64"),
		Dist:                    r.text("dist", "dist"),
		Prefix:                  r.match("prefix", ownership.DefaultPrefix, prefixes),
		BusName:                 r.match("busName", ownership.Bus, busNames),
		Table:                   r.optional("table", tableNames, "the name of a table"),
		DebounceSeconds:         r.number("debounceSeconds", 5, 0, 60), // much less than the lease's 180 s
		ResyncMinutes:           r.number("resyncMinutes", 60, 1, 1440),
		RolloutMinutes:          r.number("rolloutMinutes", 5, 5, 720),
		ProofSeconds:            r.number("proofSeconds", 900, 30, ownership.MaxProofSeconds),
		DrainSeconds:            r.number("drainSeconds", 300, 0, ownership.MaxDrainSeconds),
		PodIdentityDelaySeconds: r.number("podIdentityDelaySeconds", 15, 0, 60),

		AlarmTopicARN:    r.text("alarmTopicArn", ""),
		SubnetIDs:        r.list("subnetIds"),
		SecurityGroupIDs: r.list("securityGroupIds"),
		Endpoints:        r.endpoints(),
		VPCID:            r.text("vpcId", ""),
		RouteTableIDs:    r.list("routeTableIds"),
		OperatorRacks:    r.operatorRacks(),
		NodeActions:      r.nodeActions(),
		NodeRoles: r.matching("nodeRoles", rolePatterns,
			"a role's name behind its path, if it has one, with * for anything but not for all of it, like eksctl-*-NodeInstanceRole-*"),

		RolePath:    r.optional("rolePath", rolePaths, "an IAM path with a slash at both ends, like /team/"),
		BoundaryARN: r.optional("boundaryArn", policyARNs, "the ARN of a managed policy, like arn:aws:iam::123456789012:policy/Boundary"),
		NodePolicies: r.matching("nodePolicyArns", policyARNs,
			"the ARN of a managed policy, like arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy"),
		FIPS:      r.oneOf("fips", "false", "true") == "true",
		DualStack: r.oneOf("dualStack", "false", "true") == "true",

		ReservedConcurrency: r.number("reservedConcurrency", 0, 0, 1000),
		ValidateConcurrency: r.number("validateConcurrency", 0, 0, 1000),
		DryRunConcurrency:   r.number("dryRunConcurrency", 5, 0, 1000),

		LogRetentionDays: r.retention("logRetentionDays", 30),
		RetainLogs:       r.oneOf("logRemoval", "destroy", "retain") == "retain",

		RequireClusterTag: r.oneOf("requireClusterTag", "true", "false") == "true",

		ImageRepositories: r.matching("imageRepositories", repositories,
			"an image repository without a tag, like 123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter/controller, or the "+
				"beginning of some and /*"),
		ImageOwners: r.matching("imageOwners", imageOwners,
			"the id of an AWS account, twelve digits (as text: a number loses zeros in front), or aws-marketplace"),
		SystemNamespaces: r.matching("systemNamespaces", namespaces, "the name of a namespace, like ingress"),

		Proxies: r.matching("proxies", proxies, "a proxy, like http://proxy.example.com:3128, without a password, or a host or network that is "+
			"reached without one, like 169.254.170.23, .example.com or 10.0.0.0/8"),

		ObjectPrefixes: append(
			r.matching("objectPrefixes", rackObjects, "s3://bucket/prefix with {rack} as a part of its path, like "+
				"s3://example-config/racks/{rack}/, without wildcards; a prefix below which every rack may read is for sharedObjectPrefixes"),
			r.matching("sharedObjectPrefixes", objects,
				"s3://bucket/prefix, like s3://example-config/all/, without wildcards (a whole bucket is s3://bucket/); a prefix with "+
					"{rack} is for objectPrefixes")...),
		ObjectAccounts: r.matching("objectAccounts", accountIDs,
			"the id of an AWS account, twelve digits (as text: a number loses zeros in front)"),
		Destroy:        r.oneOf("removal", "retain", "destroy") == "destroy",
		CLICredentials: r.oneOf("synthesizer", "default", "cli") == "cli",
	}
	s.ResyncSlots = r.number("resyncSlots", s.ResyncMinutes, 1, 1440)
	r.checkTogether(s)
	r.checkEndpoints(s)
	return s, errors.Join(r.errs...)
}

// checkTogether refuses settings that do not go with others, or with what AWS keeps for itself.
func (r *reader) checkTogether(s settings) {
	if s.BusName == "default" {
		r.fail("busName", s.BusName, "a bus of the stack's own, like sawhorse, and not the account's default bus, on which others put events too")
	}
	if strings.HasPrefix(s.Prefix, "/aws") || strings.HasPrefix(s.Prefix, "/ssm") {
		r.fail("prefix", s.Prefix, "a path that does not begin with aws or ssm, which Parameter Store keeps for itself")
	}
	if s.ResyncSlots > 0 && s.ResyncMinutes%s.ResyncSlots != 0 {
		r.fail("resyncSlots", strconv.Itoa(s.ResyncSlots),
			fmt.Sprintf("a divisor of resyncMinutes, %d: a tick is a whole number of minutes", s.ResyncMinutes))
	}
	if (len(s.SubnetIDs) == 0) != (len(s.SecurityGroupIDs) == 0) {
		r.fail("subnetIds", strings.Join(s.SubnetIDs, ","), "given together with securityGroupIds, or neither of them")
	}
	if n := len(s.operatorPolicies()); n > policiesEach {
		r.fail("operatorRacks", fmt.Sprintf("%d names", len(s.OperatorRacks)),
			fmt.Sprintf("short enough for %d managed policies, which is what IAM lets a role or user have, and not for %d; "+
				"the beginning of names and *, like team-a-*, stands for many", policiesEach, n))
	}
	if len(s.NodePolicies) > 0 && s.BoundaryARN == "" {
		r.fail("nodePolicyArns", strings.Join(s.NodePolicies, ","),
			"given together with boundaryArn: the stack's own boundary limits all policies")
	}
}

// zip returns the path of a function's code.
func (s settings) zip(function string) string {
	return filepath.Join(s.Dist, s.Architecture, function+".zip")
}

// checkZips reports a missing zip in one sentence. The CDK would report it with a stack trace.
func (s settings) checkZips() error {
	for _, f := range functions {
		if _, err := os.Stat(s.zip(f.code())); err != nil {
			return fmt.Errorf("function %s: no %s: run `make build` first", f.name, s.zip(f.code()))
		}
	}
	return nil
}
