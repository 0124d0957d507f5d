package story

import (
	"fmt"
	"strings"
)

// kept is a snapshot of a rack, as `sawhorse history` prints it.
type kept struct {
	Number  int64
	Note    string
	Changed []struct{ Parameter, By string }
}

func (s *Script) snapshots() []kept { return JSON[[]kept](s, "sawhorse history demo -o json") }

// History writes settings one after the other, and finds in the history what has changed and who wrote it. It goes back to an older
// snapshot, and to the newest again; a text that was in S3 comes back too. A change that was made from an older one is refused.
func History(s *Script) {
	s.Reconciled(s.Put("karpenter_cpu_limit", "200"))
	first := s.snapshots()[0].Number

	s.Chapter("Each setting makes a snapshot", func() {
		for _, value := range []string{"201", "202", "203"} {
			s.Reconciled(s.Put("karpenter_cpu_limit", value))
		}
		s.Type("echo karpenter_cpu_limit=204 | sawhorse apply demo - --yes")
		s.Type("echo karpenter_node_labels=team=core | sawhorse apply demo - --yes --note labels")
		s.Type("sawhorse history demo")
		var got []string
		for _, snapshot := range s.snapshots()[:5] {
			line := fmt.Sprint(snapshot.Number - first)
			for _, c := range snapshot.Changed {
				line += " " + c.Parameter + " by " + c.By[strings.LastIndex(c.By, ":")+1:]
			}
			got = append(got, strings.TrimSpace(line+" "+snapshot.Note))
		}
		s.Equal("numbers, what changed, who wrote it, notes", strings.Join(got, "; "), "5 karpenter_node_labels by root labels; "+
			"4 karpenter_cpu_limit by root; 3 karpenter_cpu_limit by root; 2 karpenter_cpu_limit by root; 1 karpenter_cpu_limit by root")
		s.Contains("two snapshots", fmt.Sprintf("sawhorse diff demo@%d demo@%d", first+1, first+4), "karpenter_cpu_limit  201")
	})

	s.Chapter("Back to an older one, and forward again", func() {
		s.Type(fmt.Sprintf("sawhorse rollback demo %d --dry-run", first+2))
		s.Check("nothing is written yet", limitAndLabel, "204,core")
		s.Type(fmt.Sprintf("sawhorse rollback demo %d --yes", first+2))
		s.Check("limit and label", limitAndLabel, "202,")
		s.Contains("then nothing differs", fmt.Sprintf("sawhorse diff demo@%d", first+2), "nothing differs")
		s.Type(fmt.Sprintf("sawhorse rollback demo %d --yes", first+5))
		s.Check("limit and label", limitAndLabel, "204,core")
		s.Equal("it is a snapshot of its own", fmt.Sprintf("%d %s", s.snapshots()[0].Number-first, s.snapshots()[0].Note),
			fmt.Sprintf("7 rollback to snapshot %d", first+5))
		s.Refused("sawhorse rollback demo 999999 --yes", "has no snapshot 999999")
	})

	s.Chapter("A change that was made from an older one", func() {
		expected := s.snapshots()[0].Number
		s.Reconciled(s.Put("karpenter_cpu_limit", "205"))
		w := s.Put(change, encoded(object{"set": object{"karpenter_memory_limit_gb": "500"}, "expect": expected}))
		s.Request("full") // so that the function audit judges it, which begins full passes
		s.Reconciled()
		s.became(w, "Refused change")
		s.Contains("it says what differs", "sawhorse status demo", `karpenter_cpu_limit from "204" to "205"`)
		s.Check("the limit of memory", "kubectl get nodepool workload -o jsonpath='{.spec.limits.memory}'", "400Gi")
		s.Type("echo karpenter_memory_limit_gb=500 | sawhorse apply demo - --yes")
		s.Check("made from what the rack has", "kubectl get nodepool workload -o jsonpath='{.spec.limits.memory}'", "500Gi")
	})

	s.Chapter("Back over a text in S3 that was written over, and a pool that is gone", func() {
		const (
			object = "s3://sawhorse-demo/racks/demo/config.json"
			config = "karpenter_config"
			pools  = "additional_karpenter_nodepools_config"
			data   = "kubectl get ec2nodeclass workload -o jsonpath='{.spec.userData}'"
		)
		text := func(shell string) {
			s.Type(`echo '{"ec2NodeClass":{"userData":"#!/bin/` + shell + `"}}' | aws s3 cp - ` + object)
		}
		s.Type("aws s3 mb s3://sawhorse-demo")
		text("sh")
		s.Reconciled(s.Put(pools, `[{"name":"batch"}]`), s.Put(config, object))
		then := s.snapshots()[0].Number
		text("bash")
		s.Unset(pools)
		s.Reconciled()
		s.Check("the text that was written over it", data, "#!/bin/bash")
		s.Contains("told beforehand", fmt.Sprintf("sawhorse rollback demo %d --dry-run", then), "pool batch is created")
		s.Type(fmt.Sprintf("sawhorse rollback demo %d --yes", then))
		s.Check("the text of then", data, "#!/bin/sh")
		s.Contains("the pool of then", "kubectl get nodepools -o name", "nodepool.karpenter.sh/batch")
		s.Contains("the object is left to who writes it", "aws s3 cp "+object+" -", "#!/bin/bash")
		s.Unset(pools, config)
		s.Reconciled()
		s.Type("aws s3 rb --force s3://sawhorse-demo")
	})

	s.Change(nil, "karpenter_cpu_limit", "karpenter_memory_limit_gb", "karpenter_node_labels")
	s.Reconciled()
}
