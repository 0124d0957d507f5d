// Function nodepools applies NodePools and EC2NodeClasses, or drains and deletes them.
package main

import (
	"fmt"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodepools"
)

func main() {
	handler.StartStep("nodepools", func(env handler.Env) (handler.StepFunc, error) {
		text, err := env.Setting("SAWHORSE_DRAIN_SECONDS")
		if err != nil {
			return nil, err
		}
		drain, err := time.ParseDuration(text + "s")
		if err != nil {
			return nil, fmt.Errorf("function nodepools: SAWHORSE_DRAIN_SECONDS: %w", err)
		}
		return nodepools.New(k8s.Dial(env.AWS), drain, env.Now).Run, nil
	})
}
