package story

import (
	"fmt"
	"time"
)

// Orphans starts instances that carry Karpenter's tags and have no NodeClaim, and others that carry only some of the
// tags. It then turns Karpenter off: the former are terminated through EC2 and named, the latter keep running.
func Orphans(s *Script) {
	run := func(pool, cluster, owned string) string {
		return s.Output("aws ec2 run-instances --image-id " + newestImage +
			" --instance-type m5.large --query 'Instances[0].InstanceId' --output text --tag-specifications " +
			fmt.Sprintf("'ResourceType=instance,Tags=[{Key=karpenter.sh/nodepool,Value=%s},{Key=eks:eks-cluster-name,Value=%s},"+
				"{Key=kubernetes.io/cluster/%s,Value=owned},{Key=Name,Value=%s}]'", pool, cluster, cluster, owned))
	}
	var orphans, others []string
	s.Chapter("Instances that Karpenter does not know", func() {
		orphans = []string{run("workload", "demo", "demo/karpenter/workload"), run("batch", "demo", "demo/karpenter/batch")}
		others = []string{run("theirs", "demo", "theirs"), run("workload", "other", "other/karpenter/workload")}
		s.Say("Of this cluster and rack: %v. Of another pool, and of another cluster: %v.", orphans, others)
		s.Type("aws ec2 describe-instances --filters Name=tag-key,Values=karpenter.sh/nodepool " +
			"--query 'Reservations[].Instances[].[InstanceId,State.Name]' --output text")
	})

	s.Chapter("Off", func() {
		off(s)
		for _, id := range orphans {
			s.Check("it has ended",
				"aws ec2 describe-instances --instance-ids "+id+" --query 'Reservations[].Instances[].State.Name' --output text", "terminated")
			s.Says(id)
		}
		for _, id := range others {
			s.Check("it runs on", "aws ec2 describe-instances --instance-ids "+id+
				" --query 'Reservations[].Instances[].State.Name' --output text", "running")
		}
		withoutKarpenter(s)
		s.Type("aws ec2 terminate-instances --query 'length(TerminatingInstances)' --instance-ids " + others[0] + " " + others[1])
	})
}

// ControllerDown turns Karpenter off while its controller is down. The controller is started first, because it has to
// terminate its nodes.
func ControllerDown(s *Script) {
	s.Chapter("A node, and no controller", func() {
		single.start(s)
		single.end(s)
		s.Type("kubectl -n kube-system scale deployment karpenter --replicas=0")
		s.Until("Karpenter's pods", "kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter -o name", "", time.Minute)
	})

	s.Chapter("Off", func() {
		off(s)
		s.Says("karpenter")
		withoutKarpenter(s)
	})
}
