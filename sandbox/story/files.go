package story

// Files exports the rack's settings, edits the file, compares it and applies it: as one change, or not at all.
func Files(s *Script) {
	const before, after = `"$(dirname "$KUBECONFIG")/before.env"`, `"$(dirname "$KUBECONFIG")/after.env"`
	s.Reconciled(s.Put("karpenter_cpu_limit", "100"))
	s.Type("sawhorse export demo -o env > " + before)

	s.Chapter("A file of settings becomes one change", func() {
		s.Type("sed '/^karpenter_node_labels=/d; s/^karpenter_cpu_limit=.*/karpenter_cpu_limit=200/' " + before + " > " + after)
		s.Type("echo karpenter_node_labels=team=core >> " + after)
		s.Contains("what differs", "sawhorse diff demo "+after, "karpenter_cpu_limit    100    200")
		s.Check("nothing is written yet", limitAndLabel, "100,")
		s.Type("sawhorse apply demo " + after + " --yes --note files")
		s.Check("limit and label", limitAndLabel, "200,core")
		s.Contains("the status has the note", "sawhorse status demo", "Written  files")
		s.Contains("then nothing differs", "sawhorse diff demo "+after, "nothing differs")
		s.Contains("racks lists it", "sawhorse racks", "demo  Reconciled")
	})

	s.Chapter("A file with a mistake changes nothing", func() {
		s.Refused("(cat "+after+"; echo node_disk=many) | sed s/limit=200/limit=300/ | sawhorse apply demo - --yes", "node_disk is \"many\"")
		s.Refused("echo karpenter_cpu_limitt=300 | sawhorse diff demo -", "did you mean karpenter_cpu_limit?")
		s.Check("limit and label", limitAndLabel, "200,core")
	})

	s.Chapter("Back, and what the first file leaves out is unset", func() {
		s.Type("sawhorse apply demo " + before + " --yes --prune")
		s.Check("limit and label", limitAndLabel, "100,")
		for _, format := range []string{"json", "yaml", "env"} {
			s.Contains("as "+format, "sawhorse export demo -o "+format+" | sawhorse diff demo -", "nothing differs")
		}
	})

	s.Change(nil, "karpenter_cpu_limit", "karpenter_node_labels")
	s.Reconciled()
}
