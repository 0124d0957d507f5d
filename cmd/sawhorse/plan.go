package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// outlook is the JSON output of plan.
type outlook struct {
	answer
	// Goal is how far the plan takes the rack.
	Goal plan.Goal `json:"goal"`
	// Steps are the steps that a pass would take, in order.
	Steps []plan.Step `json:"steps"`
	// Pools has the effects on the pools. Pools that do not change are left out.
	Pools []plan.Effect `json:"pools"`
}

func planCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "plan FILE|-", Short: "Print what a pass would do", Args: only("FILE"),
		Long: aboutInput + `Prints the steps that differ from what was last applied ("previous"), and the effect on each pool's nodes.` + aboutExit,
	}
	format := outputFlag(c, "text", "json")
	c.RunE = func(_ *cobra.Command, args []string) error {
		return once(args[0], func(in input) (bool, error) {
			verdict, steps, err := in.outlook()
			if err != nil {
				return false, err
			}
			seen := outlook{answer: answerOf(verdict), Goal: verdict.Plan.Goal, Steps: []plan.Step{}, Pools: []plan.Effect{}}
			if seen.Accepted {
				seen.Steps, seen.Pools = append(seen.Steps, steps...), append(seen.Pools, verdict.Plan.Effects...)
			}
			if *format == "json" {
				return seen.Accepted, printJSON(seen, "  ")
			}
			seen.print(verdict.Config.Paused)
			return seen.Accepted, nil
		})
	}
	return c
}

func (o outlook) print(paused bool) {
	tell(os.Stdout, o.answer)
	switch {
	case !o.Accepted:
		fmt.Println("refused: a pass would change nothing")
		return
	case len(o.Steps) == 0:
		fmt.Println("nothing to do")
	case paused:
		fmt.Println("paused: a pass would report these steps, and take none of them")
	}
	for i, step := range o.Steps {
		fmt.Printf("%2d. %-20s %s\n", i+1, step.Name, step.Why)
	}
	for _, effect := range o.Pools {
		fmt.Println(effect)
	}
}
