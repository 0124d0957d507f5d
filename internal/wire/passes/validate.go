// Package passes makes the beginning of a pass, and the audit of a rack, from the environment of a function. Both make plans, with
// Helm's engine and Karpenter's types, which no other function has.
package passes

import (
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/pass/audit"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/pass/validate"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/wire"
)

// Validate returns the beginning of an iteration, which looks at the queue.
func Validate(env handler.Env) (func(context.Context, validate.Event) (validate.Answer, error), error) {
	look, err := wire.Queue(env.ReadOnly())
	if err != nil {
		return nil, err
	}
	auditor := audit.NewSteps(func() map[string]outcome.StepFunc { return map[string]outcome.StepFunc{"queue": look} })
	bus, err := wire.Bus(env)
	return beginning(env, auditor, bus).Run, err
}

// beginning returns a Validate. The auditor runs steps read-only; bus has the events of the pass.
func beginning(env handler.Env, auditor validate.Auditor, bus report.Bus) *validate.Validate {
	clusters, parameters := eks.NewFromConfig(env.AWS), ssm.NewFromConfig(env.AWS)
	observer := &observe.Observer{
		EKS: clusters, EC2: ec2.NewFromConfig(env.AWS), IAM: iam.NewFromConfig(env.AWS), SQS: sqs.NewFromConfig(env.AWS),
		SSM: parameters, Now: env.Now,
		Rules: eventbridge.NewFromConfig(env.AWS), Records: env.Store,
		Deployment: plan.Deployment{
			RequireClusterTag: os.Getenv("SAWHORSE_REQUIRE_CLUSTER_TAG") != "false", NodeRoles: env.List("SAWHORSE_NODE_ROLES"),
			ObjectPrefixes: env.List("SAWHORSE_OBJECT_PREFIXES"), ObjectOwners: env.List("SAWHORSE_OBJECT_ACCOUNTS"),
			ImageRepositories: env.List("SAWHORSE_IMAGE_REPOSITORIES"), SystemNamespaces: env.List("SAWHORSE_SYSTEM_NAMESPACES"),
			Proxies:     env.List("SAWHORSE_PROXIES"),
			ImageOwners: env.List("SAWHORSE_IMAGE_OWNERS"), RolePath: os.Getenv("SAWHORSE_ROLE_PATH"),
			Boundary: os.Getenv("SAWHORSE_BOUNDARY"), NodePolicies: env.List("SAWHORSE_NODE_POLICIES"),
		},
	}
	return &validate.Validate{
		Store: env.Store, Paths: env.Paths, Now: env.Now, Parameters: parameters, Observer: observer,
		S3: s3.NewFromConfig(env.AWS), Dial: k8s.Dial(env.AWS, clusters), Auditor: auditor, Bus: bus,
	}
}
