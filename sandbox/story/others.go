package story

// Commands for the Cluster Autoscaler of a cluster that Convox did not create.
const (
	autoscalerCommand = `kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.spec.template.spec.containers[0].command}'`
)

// UnmanagedGroups checks what happens to an Auto Scaling group that Cluster Autoscaler scales and that is
// not part of EKS.
func UnmanagedGroups(t *Teller) {
	const (
		of     = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name system --query nodegroup."
		create = `aws autoscaling create-auto-scaling-group --auto-scaling-group-name spark --min-size 0 --max-size 4 ` +
			`--desired-capacity 0 ` +
			`--launch-template "LaunchTemplateId=$(` + of + `launchTemplate.id --output text),Version=1" --vpc-zone-identifier "$(` + of +
			`'subnets[0]' --output text)" ` +
			`--tags Key=k8s.io/cluster-autoscaler/enabled,Value=true Key=k8s.io/cluster-autoscaler/demo,Value=owned`
	)
	before := asBefore(t)
	t.Check("replicas", scale("kube-system/cluster-autoscaler"), "0")

	t.Chapter("An Auto Scaling group that EKS does not know")
	t.Type(create)
	repair(t)
	t.Check("replicas, and where it may run", autoscalerPinning, "1 true")
	t.Contains("what it scales", autoscalerCommand, `"--nodes=0:4:spark"`)
	t.Check("discovery", autoscalerCommand+" | grep -c node-group-auto-discovery || true", "0")
	t.Contains("the status names the group", status, "belong to no managed node group: spark")

	t.Chapter("Off, and on again")
	off(t)
	t.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, before)
	on(t)
	t.Contains("what it scales", autoscalerCommand, `"--nodes=0:4:spark"`)

	t.Chapter("Without the group")
	t.Type("aws autoscaling delete-auto-scaling-group --auto-scaling-group-name spark --force-delete")
	repair(t)
	t.Check("replicas", scale("kube-system/cluster-autoscaler"), "0")
	t.Check("and the status says nothing of it", status+" | grep -c spark || true", "0")
}

// Contested checks what happens to a field that another tool keeps setting back: the status names the tool, and
// Sawhorse stops setting the field.
func Contested(t *Teller) {
	const (
		count = `kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.metadata.generation}'`
		back  = `kubectl -n kube-system patch deployment cluster-autoscaler --field-manager argocd-controller -p '{"spec":{"replicas":1}}'`
	)
	t.Check("replicas", scale("kube-system/cluster-autoscaler"), "0")

	t.Chapter("A tool that sets the replicas back")
	t.Type(back)
	repair(t)
	t.Check("once they are set again", scale("kube-system/cluster-autoscaler"), "0")
	t.Type(back)
	repair(t)
	t.Contains("the second time, the status says who it is", status, "argocd-controller has set it back 2 times")
	t.Check("replicas are left alone", scale("kube-system/cluster-autoscaler"), "1")
	was := t.Ask(count)
	repair(t)
	t.Check("also by the next pass", count, was)
	t.Contains("which goes on saying so", status, "argocd-controller has set it back 2 times")

	t.Chapter("The tool leaves them alone")
	t.Type("kubectl -n kube-system scale deployment cluster-autoscaler --replicas 0")
	repair(t)
	t.Check("and the status says nothing of it", status+" | grep -c contested || true", "0")
	t.Check("status", state, "Reconciled")
}
