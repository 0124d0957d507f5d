// Function access gives Sawhorse's functions access to the cluster, and takes it away.
package main

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/access"
)

func main() {
	handler.StartStep("access", func(env handler.Env) (handler.StepFunc, error) {
		text, err := env.Setting("SAWHORSE_PRINCIPALS")
		if err != nil {
			return nil, err
		}
		principals := map[string]string{}
		if err := json.Unmarshal([]byte(text), &principals); err != nil {
			return nil, fmt.Errorf("function access: SAWHORSE_PRINCIPALS: %w", err)
		}
		clusters := eks.NewFromConfig(env.AWS)
		step := &access.Access{
			EKS: clusters, IAM: iam.NewFromConfig(env.AWS),
			Dial: k8s.Dial(env.AWS, clusters), Principals: principals, Now: env.Now,
		}
		return step.Run, nil
	})
}
