// Package validate makes the beginning of an iteration from the environment of a function.
package validate

import (
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
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/pass/validate"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// New returns a Validate. The auditor runs steps read-only; bus has the events of the pass.
func New(env handler.Env, auditor validate.Auditor, bus report.Bus) *validate.Validate {
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

// Bus returns the events of a pass.
func Bus(env handler.Env) (report.Bus, error) {
	writer, err := env.Metrics()
	return report.Bus{Events: eventbridge.NewFromConfig(env.AWS), Name: env.Bus, Metrics: writer}, err
}
