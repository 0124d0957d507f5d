// Function nodepools applies NodePools and EC2NodeClasses, or drains and deletes them.
package main

import (
	"time"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodepools"
)

func main() {
	handler.StartStep("nodepools", func(env handler.Env) (handler.StepFunc, error) {
		drain, err := env.Number("SAWHORSE_DRAIN_SECONDS")
		if err != nil {
			return nil, err
		}
		return nodepools.New(k8s.Dial(env.AWS), time.Duration(drain)*time.Second, env.Now).Run, nil
	})
}
