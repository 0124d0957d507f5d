package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// function is one Lambda function. Its code is in the directory of that name under functions/.
type function struct {
	name string
	// like names another function, whose code, role and environment this one has. It exists for the sake of a reserved
	// concurrency of its own, which in Lambda belongs to a function, and not to an alias or a version of it.
	like string
	// memory is in MiB. It also determines the CPU, which limits cold starts.
	memory float64
	// cluster marks the functions that call the cluster's API server. Their roles have an access entry.
	cluster bool
	// pass marks the functions that the state machine invokes.
	pass bool
	// writes marks the functions that change EKS or IAM, whose request rates are shared with the account's other users.
	writes bool
	// timeout is in seconds, functionTimeout if it is 0.
	timeout float64
}

var functions = []function{
	{name: "validate", memory: 512, pass: true, cluster: true},
	// audit has the code of validate and of all steps, and runs the steps side by side. Below half a CPU it would take
	// longer to render charts and to open connections than to wait for answers.
	{name: "audit", memory: 1024, pass: true, cluster: true},
	// dryrun answers the events that anybody who may put events can send in any number, and that take no lease: dry runs,
	// and what is no request. They must not use up the concurrency that passes need.
	{name: "dryrun", like: "audit", memory: 1024, pass: true, cluster: true},
	{name: "change", memory: 256, pass: true},
	{name: "access", memory: 256, pass: true, cluster: true, writes: true},
	{name: "network", memory: 256, pass: true},
	{name: "nodegroups", memory: 256, pass: true, cluster: true, writes: true},
	{name: "infrastructure", memory: 256, pass: true, writes: true},
	{name: "controller", memory: 512, pass: true, cluster: true},
	{name: "nodepools", memory: 256, pass: true, cluster: true},
	{name: "proof", memory: 256, pass: true, cluster: true},
	{name: "autoscaler", memory: 256, pass: true, cluster: true},
	{name: "queue", memory: 256, pass: true},
	{name: "report", memory: 256, pass: true},
	{name: "resync", memory: 256},
	// One call looks at the nodes of all racks, a few at a time.
	{name: "rollout", memory: 256, cluster: true, timeout: rolloutTimeout},
}

// functionTimeout is in seconds. It is less than the state machine's TimeoutSeconds of a task, which is
// less than the lease.
const functionTimeout = 60

// rolloutTimeout is in seconds. It is less than the shortest time between two calls that the default allows, so that two
// calls do not look at the same racks at the same time.
const rolloutTimeout = 240

// seconds returns a function's timeout.
func (f function) seconds() awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(cmp.Or(f.timeout, functionTimeout)))
}

// code returns the name of the function whose code, role and environment this one has: mostly its own.
func (f function) code() string { return cmp.Or(f.like, f.name) }

// logicalID turns "validate" into "Validate".
func logicalID(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// functionName returns a function's name in Lambda. The state machine gets the part before the function's own name.
func (s *sawhorse) functionName(name string) string { return s.StackName + "-" + name }

// addRoles adds the roles before the functions, because the function access needs the roles of other functions.
func (s *sawhorse) addRoles() {
	for _, f := range functions {
		if f.like != "" {
			continue
		}
		// Not below the racks' path: the function infrastructure may write there, and must not reach these roles.
		s.roles[f.name] = awsiam.NewRole(s.stack, jsii.String(logicalID(f.name)+"Role"), &awsiam.RoleProps{
			AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
			Description: jsii.String("Sawhorse function " + f.name),
		})
	}
}

func (s *sawhorse) addFunctions() {
	architecture := awslambda.Architecture_ARM_64()
	if s.Architecture == "x86_64" {
		architecture = awslambda.Architecture_X86_64()
	}
	for _, f := range functions {
		role := s.roles[f.code()]
		logs := awslogs.NewLogGroup(s.stack, jsii.String(logicalID(f.name)+"Logs"), &awslogs.LogGroupProps{
			LogGroupName:  jsii.String("/aws/lambda/" + s.functionName(f.name)),
			RemovalPolicy: s.logRemoval(),
		})
		s.keep(logs)
		logs.GrantWrite(role)
		if f.like == "" {
			for _, statement := range s.permissions(f) {
				role.AddToPolicy(statement)
			}
		}
		fn := awslambda.NewFunction(s.stack, jsii.String(logicalID(f.name)), &awslambda.FunctionProps{
			FunctionName: jsii.String(s.functionName(f.name)),
			Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
			Architecture: architecture,
			Handler:      jsii.String("bootstrap"),
			Code:         awslambda.Code_FromAsset(jsii.String(s.zip(f.code())), nil),
			MemorySize:   jsii.Number(f.memory),
			Timeout:      f.seconds(),
			Role:         role,
			LogGroup:     logs,
			Tracing:      awslambda.Tracing_ACTIVE,
			Environment:  s.environment(f),

			ReservedConcurrentExecutions: s.reserved(f),
			// Executions go on with the versions with which they began, and a rollback goes back to them. What a deployment
			// that fails has published is deleted again: Lambda would not publish the same code a second time.
			CurrentVersionOptions: &awslambda.VersionOptions{RemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE},
		})
		if s.RolePath != "" { // a version keeps its role, and the CDK does not see that another path makes another one of it
			fn.InvalidateVersionBasedOn(&s.RolePath)
		}
		if s.inVPC(f) {
			s.placeInVPC(fn)
		}
		s.functions[f.name] = fn
	}
	// EventBridge and the Scheduler invoke resync asynchronously, and resync the audits. Without a destination, a failed
	// event would be lost. An audit that waits longer than the interval is superseded by the next one.
	lost := awslambdadestinations.NewSqsDestination(s.undelivered)
	s.alias("resync", &awslambda.AliasProps{OnFailure: lost, RetryAttempts: jsii.Number(2), MaxEventAge: minutes(asyncMinutes)})
	s.alias("audit", &awslambda.AliasProps{OnFailure: lost, RetryAttempts: jsii.Number(2),
		MaxEventAge: minutes(min(s.ResyncMinutes, asyncMinutes))})
	// A look that fails is superseded by the next one.
	s.alias("rollout", &awslambda.AliasProps{RetryAttempts: jsii.Number(0), MaxEventAge: minutes(min(s.RolloutMinutes, asyncMinutes))})
}

// asyncMinutes is how long Lambda keeps an asynchronous call that it cannot make.
const asyncMinutes = 60

// alias adds the alias of a function, with what Lambda does with asynchronous calls of it.
func (s *sawhorse) alias(function string, props *awslambda.AliasProps) {
	props.AliasName, props.Version = jsii.String(ownership.Alias), s.functions[function].CurrentVersion()
	s.aliases[function] = awslambda.NewAlias(s.stack, jsii.String(logicalID(function)+"Alias"), props)
}

// reserved returns a function's reserved concurrency, which is also its maximum. It is nil if the function uses the
// account's unreserved concurrency.
func (s *sawhorse) reserved(f function) *float64 {
	calls := 0
	switch {
	case f.writes:
		calls = s.ReservedConcurrency
	case f.name == "validate" || f.name == "audit":
		calls = s.ValidateConcurrency
	case f.name == "dryrun":
		calls = s.DryRunConcurrency
	}
	if calls == 0 {
		return nil
	}
	return jsii.Number(calls)
}

// keep sets the retention of a log group. The number is in CloudWatch's own form; the CDK has a name for each.
func (s *sawhorse) keep(logs awslogs.LogGroup) {
	logs.Node().DefaultChild().(awslogs.CfnLogGroup).SetRetentionInDays(jsii.Number(s.LogRetentionDays))
}

// environment returns the variables that internal/handler reads.
func (s *sawhorse) environment(f function) *map[string]*string {
	env := map[string]*string{
		"SAWHORSE_TABLE":  s.table.TableName(),
		"SAWHORSE_PREFIX": jsii.String(s.Prefix),
		"SAWHORSE_BUS":    s.bus.EventBusName(),
	}
	// The SDK's own variables (AWS SDKs and Tools Reference Guide, "Dual-stack and FIPS endpoints").
	if s.FIPS {
		env["AWS_USE_FIPS_ENDPOINT"] = jsii.String("true")
	}
	if s.DualStack {
		env["AWS_USE_DUALSTACK_ENDPOINT"] = jsii.String("true")
	}
	// The function audit runs the code of validate and of all steps.
	of := func(names ...string) bool { return f.code() == "audit" || slices.Contains(names, f.name) }
	if of("validate", "report", "resync", "rollout") {
		env["SAWHORSE_METRICS"] = jsii.String(s.StackName) // the namespace
	}
	if of("validate") {
		s.restrictions(env)
	}
	if of("access") {
		principals := map[string]any{}
		for _, other := range functions {
			if other.cluster && other.like == "" {
				principals[other.name] = map[string]any{"arn": s.roles[other.name].RoleArn(), "id": s.roles[other.name].RoleId()}
			}
		}
		env["SAWHORSE_PRINCIPALS"] = s.stack.ToJsonString(principals, nil)
	}
	if of("controller") {
		env["SAWHORSE_PRINCIPAL"] = s.roles["controller"].RoleArn()
	}
	if of("infrastructure") {
		env["SAWHORSE_CONTROLLER_BOUNDARY"] = s.controllerBoundary
		env["SAWHORSE_NODE_BOUNDARY"] = s.nodeBoundary
		env["SAWHORSE_POD_IDENTITY_DELAY_SECONDS"] = jsii.String(strconv.Itoa(s.PodIdentityDelaySeconds))
	}
	if of("nodepools", "nodegroups") {
		env["SAWHORSE_DRAIN_SECONDS"] = jsii.String(strconv.Itoa(s.DrainSeconds))
	}
	if of("proof") {
		env["SAWHORSE_PROOF_SECONDS"] = jsii.String(strconv.Itoa(s.ProofSeconds))
	}
	if f.name == "resync" {
		env["SAWHORSE_STATE_MACHINE"] = jsii.String(s.machineAliasARN())
		env["SAWHORSE_AUDIT"] = jsii.String(s.functionName("audit") + ":" + ownership.Alias)
		env["SAWHORSE_RESYNC_MINUTES"] = jsii.String(strconv.Itoa(s.ResyncMinutes))
		env["SAWHORSE_RESYNC_SLOTS"] = jsii.String(strconv.Itoa(s.ResyncSlots))
	}
	return &env
}

// restrictions adds the variables with the deployment's restrictions on racks. A setting that is empty adds none.
func (s *sawhorse) restrictions(env map[string]*string) {
	if s.RolePath != "" {
		env["SAWHORSE_ROLE_PATH"] = jsii.String(s.RolePath)
	}
	if s.BoundaryARN != "" {
		env["SAWHORSE_BOUNDARY"] = jsii.String(s.BoundaryARN)
	}
	if !s.RequireClusterTag {
		env["SAWHORSE_REQUIRE_CLUSTER_TAG"] = jsii.String("false")
	}
	for variable, list := range map[string][]string{
		"SAWHORSE_NODE_ROLES": s.NodeRoles, "SAWHORSE_OBJECT_PREFIXES": s.ObjectPrefixes, "SAWHORSE_OBJECT_ACCOUNTS": s.objectOwners(),
		"SAWHORSE_IMAGE_REPOSITORIES": s.ImageRepositories, "SAWHORSE_SYSTEM_NAMESPACES": s.SystemNamespaces,
		"SAWHORSE_PROXIES":      s.Proxies,
		"SAWHORSE_IMAGE_OWNERS": s.ImageOwners, "SAWHORSE_NODE_POLICIES": s.NodePolicies,
	} {
		if len(list) > 0 {
			env[variable] = jsii.String(strings.Join(list, ","))
		}
	}
}
