package story

const autoscalerCommand = "kubectl -n kube-system get deployment cluster-autoscaler " +
	`-o jsonpath='{.spec.template.spec.containers[0].command}'`

// UnmanagedGroups checks what happens to an Auto Scaling group that Cluster Autoscaler scales and that is
// not part of EKS.
func UnmanagedGroups(s *Script) {
	const create = `aws autoscaling create-auto-scaling-group --auto-scaling-group-name spark --min-size 0 --max-size 4 ` +
		`--desired-capacity 0 ` +
		`--launch-template "LaunchTemplateId=$(` + ofSystem + `launchTemplate.id --output text),Version=1" --vpc-zone-identifier "$(` +
		ofSystem + `'subnets[0]' --output text)" ` +
		`--tags Key=k8s.io/cluster-autoscaler/enabled,Value=true Key=k8s.io/cluster-autoscaler/demo,Value=owned`
	s.Check("replicas", autoscalerReplicas, "0")

	s.Chapter("An Auto Scaling group that EKS does not know", func() {
		s.Type(create)
		s.FullPass()
		s.Check("replicas, and where it may run", autoscalerPinning, "1 true")
		s.Contains("what it scales", autoscalerCommand, `"--nodes=0:4:spark"`)
		s.Lacks("discovery", autoscalerCommand, "node-group-auto-discovery")
		s.Says("belong to no managed node group: spark")
	})

	s.Chapter("Off, and on again", func() {
		off(s)
		s.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, autoscalerBefore)
		on(s)
		s.Contains("what it scales", autoscalerCommand, `"--nodes=0:4:spark"`)
	})

	s.Chapter("Without the group", func() {
		s.Type("aws autoscaling delete-auto-scaling-group --auto-scaling-group-name spark --force-delete")
		s.FullPass()
		s.Check("replicas", autoscalerReplicas, "0")
		s.Omits("spark")
	})
}

// Contested checks what happens to a field that another tool keeps setting back: the status names the tool, and
// Sawhorse stops setting the field.
func Contested(s *Script) {
	const (
		count = `kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.metadata.generation}'`
		back  = `kubectl -n kube-system patch deployment cluster-autoscaler --field-manager argocd-controller -p '{"spec":{"replicas":1}}'`
	)
	s.Check("replicas", autoscalerReplicas, "0")

	s.Chapter("A tool that sets the replicas back", func() {
		s.Type(back)
		s.FullPass()
		s.Check("once they are set again", autoscalerReplicas, "0")
		s.Type(back)
		s.FullPass()
		s.Says("argocd-controller has set it back 2 times")
		s.Check("replicas are left alone", autoscalerReplicas, "1")
		was := s.Output(count)
		s.FullPass()
		s.Check("also by the next pass", count, was)
		s.Says("argocd-controller has set it back 2 times")
	})

	s.Chapter("A tool that sets a field of the NodePool back, which replaces nodes", func() {
		const expiry = `kubectl get nodepool workload -o jsonpath='{.spec.template.spec.expireAfter}'`
		revert := func() {
			s.Type("kubectl patch nodepool workload --type merge --field-manager argocd-controller " +
				`-p '{"spec":{"template":{"spec":{"expireAfter":"48h"}}}}'`)
			s.FullPass()
		}
		revert()
		s.Check("once it is set again", expiry, "720h")
		revert()
		s.Says("NodePool/workload .spec.template.spec.expireAfter is contested: argocd-controller has set it back 2 times")
		s.Check("then it is left alone", expiry, "48h")
		s.Served(s.Put("karpenter_cpu_limit", "120"))
		s.Check("what else Sawhorse wants arrives", `kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'`, "120")
		s.Check("and nothing more", expiry, "48h")
		s.Served(s.Force("contested"))
		s.Check("a pass that is forced sets it again", expiry, "720h")
		s.Omits("expireAfter is contested")
	})

	s.Chapter("The tool leaves them alone", func() {
		s.Type("kubectl -n kube-system scale deployment cluster-autoscaler --replicas 0")
		s.FullPass()
		s.Omits("contested")
		s.State("Reconciled")
	})
}
