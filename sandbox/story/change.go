package story

import (
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

const (
	limits       = "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu} {.spec.limits.memory}'"
	storedLimits = "aws ssm get-parameters --names /sawhorse/racks/demo/params/karpenter_cpu_limit " +
		"/sawhorse/racks/demo/params/karpenter_memory_limit_gb --query 'sort_by(Parameters,&Name)[].Value' --output text"
	versions = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params " +
		"--query 'sort_by(Parameters,&Name)[].[Name,Version]' --output json"
)

// limitsOf is a change of the two limits that limits prints.
func limitsOf(cpu, memory string) map[string]string {
	return map[string]string{"karpenter_cpu_limit": cpu, "karpenter_memory_limit_gb": memory}
}

// became checks what the status says of a change: its outcome, and the parameters that have problems.
func (s *Script) became(w Write, what string) {
	s.Equal("the status' change", s.Status().changed(), fmt.Sprint(w.Version, " ", what))
}

// Changes writes several parameters as one change. A valid one is applied as a whole, also among hundreds of other writes. One
// with a bad value leaves every parameter as it was.
func Changes(s *Script) {
	s.Chapter("Two values as one change", func() {
		generation := JSON[int](s, poolGeneration)
		w := s.Change(limitsOf("321", "654"))
		s.Reconciled()
		s.Check("the NodePool's limits", limits, "321 654Gi")
		s.Check("in Parameter Store", storedLimits, "321\t654")
		s.Check("the NodePool's generation is one more, not two", poolGeneration, fmt.Sprint(generation+1))
		s.became(w, "Written")
	})

	s.Chapter("Among 500 other writes", func() { amongOthers(s) })

	s.Chapter("A change with one bad value", func() {
		before, generation := s.Output(versions), s.Output(poolGeneration)
		answers := subscribe(s, "refusals", problems)
		defer answers.end(s)
		w := s.Change(map[string]string{"karpenter_cpu_limit": "111", "karpenter_node_expiry": "30d"}, "karpenter_memory_limit_gb")
		s.Reconciled()
		s.became(w, "Refused karpenter_node_expiry")
		s.Equal("the event's change", answers.next(s).Change, w.Version)
		s.Check("versions of all parameters", versions, before)
		s.Check("the NodePool's generation", poolGeneration, generation)
	})

	s.Chapter("Two changes at once, of which the second takes a part of the first back", func() {
		s.Change(map[string]string{"karpenter_cpu_limit": "331", "karpenter_memory_limit_gb": "661", "karpenter_node_disk": "31"})
		w := s.Change(map[string]string{"karpenter_memory_limit_gb": "662"}, "karpenter_node_disk")
		s.Reconciled()
		s.Check("the NodePool's limits", limits, "331 662Gi")
		s.Check("in Parameter Store", storedLimits, "331\t662")
		s.became(w, "Written")
	})

	s.Chapter("The parameter is deleted and made again", func() {
		s.Served(s.Delete("demo", change))
		w := s.Change(limitsOf("341", "671"))
		s.Reconciled()
		s.Equal("its version", w.Version, 1)
		s.Check("the NodePool's limits", limits, "341 671Gi")
		s.became(w, "Written")
	})

	s.Chapter("What a change has written is deleted, two names of one length at once", func() {
		const disruption = "kubectl get nodepool workload -o jsonpath='{.spec.disruption}'"
		two := map[string]string{"karpenter_consolidate_after": "45s", "karpenter_disruption_window": "MON-FRI 22:00-04:00"}
		before := s.Output(disruption)
		s.Reconciled(s.Change(two))
		s.Equal("the NodePool has it", s.Output(disruption) != before, true)
		names := ""
		for name := range two {
			s.wrote(Write{Rack: "demo", Parameter: name, At: time.Now()})
			names += " " + parameter("demo", name)
		}
		s.Type("aws ssm delete-parameters --names" + names)
		s.Reconciled()
		s.Check("the NodePool's disruption", disruption, before)
		auditInOrder(s, "What a change has written still counts where Parameter Store is behind, for three minutes.")
		s.Check("the NodePool's disruption", disruption, before)
	})

	s.Chapter("A change whose event is lost", func() {
		s.sandbox(http.MethodPost, "change-events?order=drop&count=1", nil, nil)
		s.Put(change, encoded(object{"set": limitsOf("342", "672")}))
		s.unserved = nil
		audit(s)
		s.Reconciled()
		s.Check("the NodePool's limits", limits, "342 672Gi")
	})

	s.Chapter("A dry run of a change", func() {
		answers := subscribe(s, "answers", []string{"Rack Reconciled", "Rack Rejected"})
		defer answers.end(s)
		s.Event(reconcileRequested, object{"rack": "demo", "dryRun": true, "set": limitsOf("1", "2")})
		s.Equal("the steps of a good one", answers.next(s).Steps, []string{"nodepools"})
		s.Contains("the command asks for one too", "echo karpenter_cpu_limit=7 | sawhorse apply demo - --dry-run",
			"a pass would take these steps: nodepools")
		s.Equal("the bus has its answer", answers.next(s).Steps, []string{"nodepools"})
		w := s.Event(reconcileRequested, object{"rack": "demo", "set": limitsOf("1", "2")})
		heard := answers.next(s)
		s.Equal("the answer to one that is no dry run", heard.Event, w.Event)
		s.unserved = nil
		s.Check("the NodePool's limits", limits, "342 672Gi")
	})

	s.Chapter("A misspelled detail type is answered", func() { misspelled(s) })

	s.Chapter("A change that pauses the rack", func() {
		w := s.Change(map[string]string{"paused": "true", "karpenter_cpu_limit": "323"})
		s.Paused()
		s.became(w, "Written")
		s.Check("the NodePool's limits", limits, "342 672Gi")
		s.Reconciled(s.Put("paused", "unset"))
		s.Check("the NodePool's limits", limits, "323 672Gi")
	})

	s.Chapter("Back to the defaults", func() {
		w := s.Change(nil, "karpenter_cpu_limit", "karpenter_memory_limit_gb")
		s.Reconciled()
		s.Check("the NodePool's limits", limits, "100 400Gi")
		s.Check("in Parameter Store", storedLimits, "unset\tunset")
		s.became(w, "Written")
	})
}

// amongOthers changes both limits while another parameter is written 500 times, and looks at them all the time.
func amongOthers(s *Script) {
	s.Say("Meanwhile karpenter_node_expiry is written 500 times.")
	client := ssm.NewFromConfig(s.env.AWS())
	put := func(n int) {
		_, err := client.PutParameter(s.ctx, &ssm.PutParameterInput{
			Name: new(parameter("demo", "karpenter_node_expiry")), Value: new(fmt.Sprintf("%dh", 700+n%2)), Type: types.ParameterTypeString,
			Overwrite: new(true),
		})
		if err != nil {
			s.fail("put-parameter: %v", err)
		}
	}
	seen := map[string]bool{}
	for n := range 500 {
		if put(n); n == 100 {
			s.Change(limitsOf("322", "655"))
		}
		if n%20 == 0 {
			seen[s.Output(limits)] = true
		}
	}
	s.Reconciled()
	seen[s.Output(limits)] = true
	s.Equal("limits that the NodePool has had", joined(seen), "321 654Gi 322 655Gi")
	s.Reconciled(s.Put("karpenter_node_expiry", "unset"))
}

// ChangeGivenUp shows changes that cannot be written: what they have written is put back, and nothing is held up.
func ChangeGivenUp(s *Script) {
	s.Served(s.Put("karpenter_cpu_limit", "110"), s.Put("karpenter_memory_limit_gb", "410"))
	s.Chapter("Somebody writes one of the parameters, and no read shows it yet", func() {
		name := parameter("demo", "karpenter_cpu_limit")
		lag := "lag?kind=parameter&resource=" + name
		s.sandbox(http.MethodPost, lag+"&seconds=30", nil, nil)
		s.sandbox(http.MethodPost, "change-events?order=drop&count=1", nil, nil)
		s.Type(put + "karpenter_cpu_limit --value 119")
		w := s.Change(limitsOf("140", "440"))
		s.Reconciled()
		s.sandbox(http.MethodPost, lag, nil, nil)
		s.became(w, "GivenUp karpenter_cpu_limit")
		s.Check("in Parameter Store", storedLimits, "119\t410")
		s.Check("the NodePool's limits", limits, "119 410Gi")
		lagsEnd(s)
		s.Reconciled(s.Put("karpenter_cpu_limit", "110"))
	})

	s.Chapter("Parameter Store does not take one of the values", func() {
		s.Type("aws ssm put-parameter --overwrite --type String --name /sawhorse/racks/demo/params/karpenter_memory_limit_gb " +
			"--value 410 --allowed-pattern '^(4[0-9]+|unset)$'")
		w := s.Change(limitsOf("120", "520"))
		s.Reconciled()
		s.became(w, "GivenUp karpenter_memory_limit_gb")
		s.Check("in Parameter Store", storedLimits, "110\t410")
		s.Check("the NodePool's limits", limits, "110 410Gi")
	})

	s.Chapter("The right to write is missing, and Karpenter is turned off", func() {
		deny(s, "change", "ssm:PutParameter")
		w := s.Change(limitsOf("130", "430"))
		became := func() string { return s.Status().changed() }
		s.Await("the status' change", became, fmt.Sprint(w.Version, " Writing"), time.Minute)
		s.Check("the NodePool's limits, before anything is written", limits, "130 430Gi")
		s.Put("karpenter_enabled", "false")
		s.Until("NodePools", "kubectl get nodepools -o name", "", 4*time.Minute)
		s.Reconciled()
		s.Await("the status' change", became, fmt.Sprint(w.Version, " GivenUp karpenter_cpu_limit"), 5*time.Minute)
		allow(s, "change")
		s.Check("in Parameter Store", storedLimits, "110\t410")
	})

	s.Chapter("The same change again, with Karpenter", func() {
		w := s.Change(map[string]string{"karpenter_cpu_limit": "130", "karpenter_memory_limit_gb": "430", "karpenter_enabled": "true"})
		s.Reconciled()
		s.became(w, "Written")
		s.Check("the NodePool's limits", limits, "130 430Gi")
	})
	s.Delete("demo", "karpenter_memory_limit_gb") // its pattern goes with it
	s.Reconciled(s.Put("karpenter_cpu_limit", "unset"))
}

// misspelled puts an event of which one letter is missing.
func misspelled(s *Script) {
	answers := subscribe(s, "problems", problems)
	defer answers.end(s)
	before, began := s.Output(versions), time.Now()
	w := s.Event("Rack Reconcile Request", object{"rack": "demo"})
	heard := answers.next(s)
	s.Equal("the answer's rack and event", heard.Rack+" "+heard.Event, "demo "+w.Event)
	s.Check("versions of all parameters", versions, before)
	s.Equal("executions: that of the event, and none of the answer", s.executions(began), 1)
}
