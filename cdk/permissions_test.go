package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unscoped lists the actions that may be allowed on every resource, and why.
var unscoped = map[string]string{
	"xray:PutTraceSegments":                    "X-Ray knows no resources for it",
	"xray:PutTelemetryRecords":                 "X-Ray knows no resources for it",
	"xray:GetSamplingRules":                    "X-Ray knows no resources for it",
	"xray:GetSamplingTargets":                  "X-Ray knows no resources for it",
	"logs:CreateLogDelivery":                   "log deliveries of Step Functions know no resources",
	"logs:GetLogDelivery":                      "log deliveries of Step Functions know no resources",
	"logs:UpdateLogDelivery":                   "log deliveries of Step Functions know no resources",
	"logs:DeleteLogDelivery":                   "log deliveries of Step Functions know no resources",
	"logs:ListLogDeliveries":                   "log deliveries of Step Functions know no resources",
	"logs:PutResourcePolicy":                   "log deliveries of Step Functions know no resources",
	"logs:DescribeResourcePolicies":            "log deliveries of Step Functions know no resources",
	"logs:DescribeLogGroups":                   "log deliveries of Step Functions know no resources",
	"ssm:DescribeParameters":                   "SSM knows no resources for it; it gives names, no values",
	"iam:ListInstanceProfiles":                 "IAM knows paths of profiles, and no resources for listing them",
	"ec2:DescribeSubnets":                      "EC2 knows no resources for describing",
	"ec2:DescribeSecurityGroups":               "EC2 knows no resources for describing",
	"ec2:DescribeTags":                         "EC2 knows no resources for describing",
	"ec2:DescribeInstances":                    "EC2 knows no resources for describing",
	"ec2:DescribeImages":                       "EC2 knows no resources for describing",
	"ec2:DescribeCapacityReservations":         "EC2 knows no resources for describing",
	"ec2:DescribePlacementGroups":              "EC2 knows no resources for describing",
	"ec2:DescribeInstanceTypeOfferings":        "EC2 knows no resources for describing",
	"ec2:DescribeInstanceTypes":                "EC2 knows no resources for describing",
	"ec2:DescribeLaunchTemplateVersions":       "EC2 knows no resources for describing",
	"autoscaling:DescribeAutoScalingGroups":    "Auto Scaling knows no resources for describing",
	"autoscaling:DescribeAutoScalingInstances": "Auto Scaling knows no resources for describing",
	"states:ListStateMachines":                 "Step Functions knows no resources for listing them",
	"cloudwatch:GetMetricData":                 "CloudWatch knows no resources for figures",
	"cloudwatch:DescribeAlarms":                "CloudWatch's console and CLI ask for all alarms at once",
	"ec2:DescribeSpotPriceHistory":             "EC2 knows no resources for describing",
	"pricing:GetProducts":                      "the price list is the same for everybody",
	"ec2:CreateNetworkInterface":               "Lambda in a VPC; AWSLambdaVPCAccessExecutionRole has the same",
	"ec2:DescribeNetworkInterfaces":            "Lambda in a VPC; AWSLambdaVPCAccessExecutionRole has the same",
	"ec2:DeleteNetworkInterface":               "Lambda in a VPC; AWSLambdaVPCAccessExecutionRole has the same",
	"ec2:AssignPrivateIpAddresses":             "Lambda in a VPC; AWSLambdaVPCAccessExecutionRole has the same",
	"ec2:UnassignPrivateIpAddresses":           "Lambda in a VPC; AWSLambdaVPCAccessExecutionRole has the same",
}

// unscopedAtMost are the actions that the boundaries allow on every resource. A boundary grants nothing by itself.
var unscopedAtMost = regexp.MustCompile(`^(pricing:GetProducts|iam:ListInstanceProfiles|arc-zonal-shift:GetManagedResource|` +
	`ec2:Describe\w+|ecr:GetAuthorizationToken|` +
	`ssm:\w+|ssmmessages:\w+|ec2messages:\w+)$`)

// grant is a statement with its location. Unless stated otherwise it is an Allow statement.
type grant struct {
	where              string
	actions, resources []any
	condition          any
}

// boundary reports whether the statement belongs to a permissions boundary, which grants nothing by itself.
func (g grant) boundary() bool { return strings.Contains(g.where, "Boundary") }

func (t template) grants() []grant { return t.statements("Allow") }

func (t template) statements(effect string) (all []grant) {
	for _, kind := range []string{"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"} {
		for id, policy := range t.all(kind) {
			for _, s := range list(at(policy.Properties, "PolicyDocument", "Statement")) {
				if at(s, "Effect") == effect {
					all = append(all, grant{id, list(at(s, "Action")), list(at(s, "Resource")), at(s, "Condition")})
				}
			}
		}
	}
	return all
}

func TestNoStatementIsWiderThanExplained(t *testing.T) {
	for _, of := range []template{production, custom} {
		for _, g := range of.grants() {
			boundary := g.boundary()
			for _, a := range g.actions {
				action := a.(string)
				if boundary && slices.Contains([]string{"s3:Get*", "kms:Decrypt"}, action) {
					continue // the custom stack's nodeActions
				}
				if strings.Contains(action, "*") && !(boundary && action == "ec2:Describe*") {
					t.Errorf("%s: action %s", g.where, action)
				}
				if slices.Contains(g.resources, any("*")) && unscoped[action] == "" && !(boundary && unscopedAtMost.MatchString(action)) {
					t.Errorf("%s: %s on every resource", g.where, action)
				}
			}
		}
	}
}

func TestNoManagedPolicyOfAWSIsAttached(t *testing.T) {
	for id, role := range production.all("AWS::IAM::Role") {
		if role.Properties["ManagedPolicyArns"] != nil {
			t.Errorf("%s: %s", id, text(role.Properties["ManagedPolicyArns"]))
		}
	}
}

func TestIAMWritesAreConfinedAndBounded(t *testing.T) {
	grants := []string{"iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:PutRolePermissionsBoundary"}
	seen := 0
	for _, g := range production.grants() {
		for _, a := range g.actions {
			action := a.(string)
			if !strings.HasPrefix(action, "iam:") || strings.HasPrefix(action, "iam:Get") || strings.HasPrefix(action, "iam:List") ||
				g.boundary() {
				continue
			}
			seen++
			if action == "iam:PassRole" && strings.HasPrefix(g.where, "Nodegroups") {
				continue // TestNodeGroupsAreReplacedByCopiesOnly
			}
			if !strings.HasPrefix(g.where, "Infrastructure") {
				t.Errorf("%s may %s", g.where, action)
			}
			for _, r := range g.resources {
				if !strings.Contains(text(r), ":role/sawhorse/") && !strings.Contains(text(r), ":instance-profile/karpenter/") {
					t.Errorf("%s: %s on %s", g.where, action, text(r))
				}
			}
			of, roles := "ControllerBoundary", 1
			if strings.Contains(text(g.resources), `-nodes"`) {
				of, roles = "NodeBoundary", strings.Count(text(g.resources), `-nodes"`)
			}
			if condition := text(g.condition); slices.Contains(grants, action) &&
				(!strings.Contains(condition, `"iam:PermissionsBoundary":{"Ref":"`+of) || len(g.resources) != roles) {
				t.Errorf("%s: %s on %s without their boundary: %s", g.where, action, text(g.resources), condition)
			} else if action == "iam:PassRole" && !strings.Contains(condition, "iam:PassedToService") {
				t.Errorf("%s: %s to any service", g.where, action)
			}
		}
	}
	if seen < len(grants) {
		t.Errorf("only %d IAM writes found", seen)
	}
}

// The roles of the functions and the boundaries must not have a path on which the function infrastructure may write.
func TestOwnRolesAreOutOfReach(t *testing.T) {
	for _, kind := range []string{"AWS::IAM::Role", "AWS::IAM::ManagedPolicy"} {
		for id, r := range production.all(kind) {
			if path := r.Properties["Path"]; path != nil && path != "/" {
				t.Errorf("%s: path %v", id, path)
			}
		}
	}
}

func TestTaggingIsConfinedToTheDiscoveryTag(t *testing.T) {
	for _, g := range production.grants() {
		if !slices.Contains(g.actions, any("ec2:CreateTags")) || g.boundary() {
			continue
		}
		want := `{"ForAllValues:StringEquals":{"aws:TagKeys":["karpenter.sh/discovery"]},"Null":{"aws:TagKeys":"false"}}`
		if strings.HasPrefix(g.where, "Nodegroups") {
			want = `{"StringEquals":{"ec2:CreateAction":"RunInstances"}}` // the resources that a launch template tags
		}
		if got := text(g.condition); got != want {
			t.Errorf("%s: condition %s, want %s", g.where, got, want)
		}
	}
}

// Only one function terminates instances, and only those with both of Karpenter's tags.
func TestOnlyKarpentersInstancesAreTerminated(t *testing.T) {
	seen := 0
	for _, g := range production.grants() {
		if !slices.Contains(g.actions, any("ec2:TerminateInstances")) || g.boundary() {
			continue
		}
		seen++
		want := `{"StringLike":{"aws:ResourceTag/eks:eks-cluster-name":"*","aws:ResourceTag/karpenter.sh/nodepool":"*"}}`
		if got := text(g.condition); got != want || !strings.HasPrefix(g.where, "Nodepools") || len(g.actions) != 1 ||
			!strings.HasSuffix(text(g.resources), `:instance/*"]]}]`) {
			t.Errorf("%s: %s on %s, condition %s", g.where, text(g.actions), text(g.resources), got)
		}
	}
	if seen != 1 {
		t.Errorf("%d statements", seen)
	}
}

// Users own the parameters. One function writes them, for changes of several. The policy for operators is for users.
func TestOnlyChangeWritesParameters(t *testing.T) {
	seen := false
	for _, g := range production.grants() {
		writes := slices.ContainsFunc(g.actions, func(a any) bool {
			return slices.Contains([]string{"ssm:PutParameter", "ssm:DeleteParameter", "ssm:DeleteParameters"}, a.(string))
		})
		if !writes || strings.HasPrefix(g.where, "Operator") {
			continue
		}
		for _, r := range g.resources {
			if !strings.Contains(text(r), "/sawhorse/racks/*/") {
				t.Errorf("%s writes %s", g.where, text(r))
			}
			below := strings.Contains(text(r), "/sawhorse/racks/*/params")
			if change := strings.HasPrefix(g.where, "Change"); below != change {
				t.Errorf("%s writes %s", g.where, text(r))
			} else if change {
				seen = true
				if !slices.Equal(g.actions, []any{"ssm:PutParameter"}) || !strings.HasSuffix(text(r), `:parameter/sawhorse/racks/*/params/*"]]}`) {
					t.Errorf("%s: %s on %s", g.where, text(g.actions), text(r))
				}
			}
		}
	}
	if !seen {
		t.Error("the function change may write nothing")
	}
}

// The function resync may read only the histories of Sawhorse's own executions. The same applies to viewers.
func TestResyncReadsItsOwnHistories(t *testing.T) {
	seen := 0
	for _, g := range production.grants() {
		if slices.Contains(g.actions, any("states:GetExecutionHistory")) {
			seen++
			if !strings.HasPrefix(g.where, "Resync") && !strings.HasPrefix(g.where, "Viewer") ||
				!strings.Contains(text(g.resources), ":execution:Sawhorse-reconcile:*") {
				t.Errorf("%s on %s", g.where, text(g.resources))
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d statements", seen)
	}
}

// The deployment's nodeActions are only in the boundaries, which grant nothing by themselves. The keys of nodes'
// volumes are used on behalf of the controller.
func TestNodeActionsAreInTheBoundariesOnly(t *testing.T) {
	for i, of := range []template{production, custom} {
		var where []string
		for _, g := range of.grants() {
			if actions := text(g.actions); strings.Contains(actions, "s3:Get*") || strings.Contains(actions, "kms:") {
				where = append(where, strings.TrimRight(g.where, "0123456789ABCDEF")+" "+actions+" "+text(g.resources))
			}
		}
		slices.Sort(where)
		want := []string{`ControllerBoundary ["kms:Decrypt"] ["*"]`, `NodeBoundary ["s3:Get*","kms:Decrypt"] ["*"]`}[:2*i]
		if !slices.Equal(where, want) {
			t.Errorf("stack %d has it in %q", i, where)
		}
	}
}

// The function audit validates too.
func TestOnlyValidateAndAuditReadObjectsOfThePrefixes(t *testing.T) {
	for i, of := range []template{production, custom} {
		var found []string
		for _, g := range of.grants() {
			if strings.Contains(text(g.actions), `"s3:`) && !g.boundary() {
				if !strings.HasPrefix(g.where, "Validate") && !strings.HasPrefix(g.where, "Audit") {
					t.Errorf("%s may %s", g.where, text(g.actions))
				}
				found = append(found, text(g.actions)+text(g.resources))
			}
		}
		want := []string{`["s3:GetObject"][{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":s3:::config/racks/*/*"]]},` +
			`{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":s3:::config/shared*"]]}]`}
		if want = slices.Concat(want, want)[:2*i]; !slices.Equal(found, want) {
			t.Errorf("stack %d: %v", i, found)
		}
	}
}

// Whatever policies a rack attaches to its nodes, they cannot launch, tag or terminate instances, read queues or change
// roles. A controller can do so only under conditions, and with the node role and the queue of its own rack.
func TestBoundariesHoldBack(t *testing.T) {
	conditional := map[string]string{
		"ec2:CreateTags": "karpenter.sh/nodepool", "ec2:CreateLaunchTemplate": "aws:RequestTag/karpenter.sh/nodepool",
		"ec2:TerminateInstances":       "aws:ResourceTag/karpenter.sh/nodepool",
		"ec2:DeleteLaunchTemplate":     "aws:ResourceTag/karpenter.sh/nodepool",
		"iam:CreateInstanceProfile":    "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass",
		"iam:AddRoleToInstanceProfile": "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass", "iam:PassRole": "iam:PassedToService",
	}
	seen := map[string]bool{}
	for _, g := range production.grants() {
		for _, a := range g.actions {
			action := a.(string)
			service, verb, _ := strings.Cut(action, ":")
			switch {
			case strings.HasPrefix(g.where, "NodeBoundary"):
				launches := slices.Contains([]string{"RunInstances", "CreateFleet", "CreateLaunchTemplate", "TerminateInstances"}, verb)
				if launches || slices.Contains([]string{"sqs", "iam", "sts", "s3"}, service) ||
					verb == "CreateTags" && !strings.HasSuffix(text(g.resources), `:network-interface/*"]]}]`) {
					t.Errorf("nodes: %s on %s", action, text(g.resources))
				}
			case strings.HasPrefix(g.where, "ControllerBoundary"):
				seen[action] = true
				if want := conditional[action]; !strings.Contains(text(g.condition), want) {
					t.Errorf("controllers: %s on %s, condition %s", action, text(g.resources), text(g.condition))
				}
				if (action == "iam:PassRole" || service == "sqs") &&
					!strings.Contains(text(g.resources), "${aws:PrincipalTag/sawhorse.dev/rack}-karpenter") {
					t.Errorf("controllers: %s on %s", action, text(g.resources))
				}
				if strings.Contains(text(g.resources), "::snapshot/*") && text(g.condition) != `{"StringEquals":{"ec2:Owner":"amazon"}}` {
					t.Errorf("controllers: %s of %s, condition %s", action, text(g.resources), text(g.condition))
				}
			}
		}
	}
	for action := range conditional {
		if !seen[action] {
			t.Errorf("controllers may not %s", action)
		}
	}
}

// A managed policy is limited to 6,144 characters without white space. Resolved ARNs are longer than their tokens.
func TestBoundariesFit(t *testing.T) {
	for id, boundary := range production.boundaries(t) {
		if size := len(longest(t, boundary.Properties["PolicyDocument"])); size > 6144 {
			t.Errorf("%s: %d characters", id, size)
		}
	}
}

// longest returns a policy document in which every open value of the template has its maximum length.
func longest(t *testing.T, document any) string {
	t.Helper()
	joins := regexp.MustCompile(`\{"Fn::Join":\["",\[(.*?)\]\]\}`).ReplaceAllStringFunc(text(document), func(join string) string {
		join = strings.NewReplacer(`{"Ref":"AWS::Partition"}`, "aws-us-gov", `{"Ref":"AWS::Region"}`, "ap-southeast-2",
			`{"Ref":"AWS::AccountId"}`, "123456789012", `{"Fn::Join":["",[`, `"`, `]]}`, `"`, `"`, "", `,`, "").Replace(join)
		return `"` + join + `"`
	})
	joins = strings.ReplaceAll(joins, `{"Ref":"AWS::AccountId"}`, `"123456789012"`)
	if strings.Contains(joins, "Fn::") || strings.Contains(joins, `"Ref"`) {
		t.Fatalf("not resolved: %s", joins)
	}
	return joins
}

func TestNoARNNamesAPartition(t *testing.T) {
	for id, r := range production.Resources {
		if strings.Contains(text(r.Properties), "arn:aws:") {
			t.Errorf("%s: %s", id, text(r.Properties))
		}
	}
}

// The function audit reads what validate and the steps read. It writes the records of racks, at the beginning of a full
// pass, and events on Sawhorse's own bus; the rest is Lambda's.
func TestTheAuditOnlyReads(t *testing.T) {
	writes := []string{"dynamodb:UpdateItem", "dynamodb:PutItem", "events:PutEvents", "sqs:SendMessage",
		"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTraceSegments", "xray:PutTelemetryRecords"}
	seen := 0
	for _, g := range production.granted("audit") {
		for _, a := range g.actions {
			_, operation, _ := strings.Cut(a.(string), ":")
			reads := regexp.MustCompile(`^(Get|List|Describe|Query)`).MatchString(operation)
			if seen++; !reads && !slices.Contains(writes, a.(string)) {
				t.Errorf("audit may %s", a)
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d actions: the test has lost the role", seen)
	}
	// What it lacks of the steps' reads would make a step due for ever. The end of an update, and whether the instance of an emptied node
	// ends already, are read only where a step is due by its record, which an audit does not run.
	have := map[string]bool{"eks:DescribeUpdate": true, "autoscaling:DescribeAutoScalingInstances": true}
	for _, g := range production.granted("audit") {
		for _, a := range g.actions {
			have[a.(string)] = true
		}
	}
	for _, f := range functions {
		if !f.pass || f.name == "change" || f.name == "report" {
			continue
		}
		for _, g := range production.granted(f.name) {
			for _, a := range g.actions {
				service, operation, _ := strings.Cut(a.(string), ":")
				if regexp.MustCompile(`^(Get|List|Describe|Query)`).MatchString(operation) && !have[a.(string)] {
					t.Errorf("%s reads with %s:%s, which audit may not", f.name, service, operation)
				}
			}
		}
	}
}
