package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/charts"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// outlook is the JSON output of plan.
type outlook struct {
	answer
	// Goal is the state to which the plan brings the rack.
	Goal plan.Goal `json:"goal"`
	// Steps are the steps that a pass would take, in order.
	Steps []plan.Step `json:"steps"`
	// Sections are what all steps of the plan apply, in order.
	Sections []sectionOfStep `json:"sections"`
	// Pools are the effects on the pools' nodes. Pools that do not change are left out.
	Pools []plan.Effect `json:"pools"`
	// Unknown says what the plan does not know because the input leaves it out.
	Unknown []string `json:"unknown,omitempty"`
}

// sectionOfStep is what one step applies.
type sectionOfStep struct {
	plan.Section
	// Differs lists the differences from what was applied last, one line for each field. It is absent if nothing differs,
	// or if the input has no previous parameters.
	Differs []string `json:"differs,omitempty"`
}

func planCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "plan FILE|-", Short: "Print what a pass would do", Args: exactly("FILE"),
		Long: aboutInput + `Prints the steps that differ from what was last applied ("previous"), what differs in each,
and the effect on each pool's nodes. The JSON object has the sections of all steps.` + aboutExit,
	}
	format := outputFlag(c, "text", "json")
	sections := c.Flags().Bool("sections", false,
		"also print what each step of the plan applies: policies, attributes, chart values, manifests, arguments")
	c.RunE = func(_ *cobra.Command, args []string) error {
		return once(args[0], func(in input) (bool, error) {
			seen, paused := in.outlook()
			if *format == "json" {
				return seen.Accepted, printJSON(seen)
			}
			seen.print(paused)
			if *sections {
				return seen.Accepted, seen.printSections()
			}
			return seen.Accepted, nil
		})
	}
	return c
}

// outlook validates an input as a pass would, and compares its plan with what was applied last.
func (in input) outlook() (seen outlook, paused bool) {
	last := in.applied()
	// Without the objects of a chart that would refuse the previous values today, the step of the controller is shown.
	_ = charts.Add(&last.plan, in.facts(last.records))
	last.plan.SetFingerprints()
	last.records.Applied = map[string]string{}
	for _, step := range last.plan.Steps {
		last.records.Applied[step.Name] = step.Fingerprint
	}
	judged := in.judged(last)
	judged.Compare, judged.InForce = true, &last.plan
	result := validation.Validate(judged)
	seen = outlook{
		answer: answerOf(result.Problems, result.Warnings), Goal: result.Plan.Goal,
		Steps: []plan.Step{}, Sections: []sectionOfStep{}, Pools: []plan.Effect{},
	}
	if !seen.Accepted {
		// The brakes take effect all the same.
		if c := result.Config; !c.Paused && !c.HasRefused(params.ParamFreeze) && last.plan.Freeze(c.Freeze) {
			seen.Steps = slices.DeleteFunc(last.plan.Due(last.records.Applied), func(s plan.Step) bool { return s.Name != plan.FreezeStep })
		}
		return seen, false
	}
	seen.Steps, seen.Pools = append(seen.Steps, result.Plan.Due(last.records.Applied)...), append(seen.Pools, result.Plan.Effects...)
	seen.Unknown = in.unknown(seen.Pools)
	differs := map[string][]string{}
	if in.Previous != nil {
		for _, d := range plan.Differences(&last.plan, &result.Plan) {
			differs[d.Step] = d.Lines
		}
	}
	for _, s := range result.Plan.Sections() {
		seen.Sections = append(seen.Sections, sectionOfStep{s, differs[s.Step]})
	}
	return seen, result.Config.Paused
}

// unknown says what the input leaves out although it tells of a cluster that runs.
func (in input) unknown(pools []plan.Effect) (all []string) {
	if in.Previous == nil && len(in.Observed.Pools)+len(in.Observed.NodeClaims) > 0 {
		all = append(all, "previous is left out although the cluster has pools: what is in force is not known, so every step is listed, and "+
			"whether it changes anything is not known either")
	}
	for _, e := range pools {
		if in.Observed.Pools != nil && e.Nodes == nil && e.Change != events.PoolCreated {
			all = append(all, "observed.pools leaves pool "+e.Pool+" out: how many nodes it has is not known")
		}
	}
	return all
}

// takesNone is said of the steps for a rack that is paused or held.
const takesNone = ": a pass would report these steps, and take none of them"

func (o outlook) print(paused bool) {
	tell(os.Stdout, o.answer)
	switch {
	case !o.Accepted && len(o.Steps) == 0:
		fmt.Println("refused: a pass would change nothing")
	case !o.Accepted:
		fmt.Println("refused: a pass would only do this to what is in force")
	case len(o.Steps) == 0:
		fmt.Println("nothing to do")
	case paused:
		fmt.Println("paused" + takesNone)
	}
	for i, step := range o.Steps {
		fmt.Printf("%2d. %-20s %s\n", i+1, step.Name, step.Why)
		for _, s := range o.Sections {
			if s.Step == step.Name && step.PrecheckFor == "" { // the step that it is for shows what differs
				for _, text := range s.Differs {
					fmt.Println("    " + text)
				}
			}
		}
	}
	for _, effect := range o.Pools {
		fmt.Println(effect)
	}
	for _, text := range o.Unknown {
		fmt.Println("unknown  " + text)
	}
}

// printSections prints each section as JSON, under the step's name.
func (o outlook) printSections() error {
	for _, s := range o.Sections {
		fmt.Printf("\n%s\n", s.Step)
		if err := printJSON(s.Section.Section); err != nil {
			return err
		}
	}
	return nil
}
