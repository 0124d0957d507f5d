// Function validate begins an iteration: it reads the rack's parameters and makes the plan, or says why it cannot.
package main

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
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/queue"
	"github.com/sawhorse-io/sawhorse/internal/steps/report"
	"github.com/sawhorse-io/sawhorse/internal/steps/validate"
)

func main() {
	handler.Start("validate", func(env handler.Env) (func(context.Context, validate.Event) (validate.Answer, error), error) {
		writer, err := env.Metrics()
		if err != nil {
			return nil, err
		}
		bus := report.Bus{Events: eventbridge.NewFromConfig(env.AWS), Name: env.Bus, Metrics: writer}
		queues, rules := sqs.NewFromConfig(env.AWS), eventbridge.NewFromConfig(env.AWS)
		clusters := eks.NewFromConfig(env.AWS)
		clients := validate.Clients{
			Parameters: ssm.NewFromConfig(env.AWS), EKS: clusters, EC2: ec2.NewFromConfig(env.AWS),
			IAM: iam.NewFromConfig(env.AWS), SQS: queues, Rules: rules, Queue: &queue.Queue{SQS: queues, Rules: rules, Deletions: env.Store, Now: env.Now},
			S3: s3.NewFromConfig(env.AWS), Dial: k8s.Dial(env.AWS, clusters),
		}
		deployment := plan.Deployment{
			RequireClusterTag: os.Getenv("SAWHORSE_REQUIRE_CLUSTER_TAG") != "false", NodeRoles: env.List("SAWHORSE_NODE_ROLES"),
			ObjectPrefixes: env.List("SAWHORSE_OBJECT_PREFIXES"), ObjectOwners: env.List("SAWHORSE_OBJECT_ACCOUNTS"),
			ImageRepositories: env.List("SAWHORSE_IMAGE_REPOSITORIES"), SystemNamespaces: env.List("SAWHORSE_SYSTEM_NAMESPACES"),
		}
		return validate.New(env.Store, env.Paths, deployment, env.Now, clients, bus).Run, nil
	})
}
