package story

import (
	"fmt"
	"net/http"
	"time"
)

// NewImages has Amazon release newer AMIs while one alias is for all pools and one pool follows @latest. Then Kubernetes moves past an
// alias that has no image for it, and does not come back: EKS never goes to an earlier version.
func NewImages(s *Script) {
	const (
		alias, pools = "karpenter_ami_alias", "additional_karpenter_nodepools_config"
		following    = `[{"name":"canary","ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023@latest"}]}}]`
		behind       = "build al2023@v20260801;canary al2023@latest;workload al2023@v20260801;"
		upgraded     = "aws eks describe-cluster --name demo --query 'cluster.[version,status]' --output text"
		doctor       = "sawhorse doctor demo --kubernetes 1.36 || true"
		without      = "of which AWS has no AMI for amd64 (standard)"
	)
	of := func(pool string) app {
		return app{name: "on-" + pool, replicas: 1, cpu: `"2"`, spec: "nodeSelector: {karpenter.sh/nodepool: " + pool + "}"}
	}
	s.Chapter("All pools a week behind, and one that follows @latest", func() {
		s.Reconciled(s.Change(map[string]string{alias: "al2023@latest-7d", pools: following, "karpenter_consolidate_after": "1h",
			"karpenter_controller_config": `{"settings":{"eksControlPlane":true}}`})) // Kubernetes' version is EKS's then, as on AWS
		s.Check("aliases", aliases, behind)
		of("workload").start(s)
		of("canary").start(s)
		runs(s, "workload", "1.35-v20260801")
		runs(s, "canary", "1.35-v20260828")
	})

	s.Chapter("A newer release moves the pool that follows @latest, and no other", func() {
		before := s.Output(of("workload").node())
		publish(s, "al2023@v20260911")
		runs(s, "canary", "1.35-v20260911")
		s.Await("the status tells what @latest is", func() string { lookAtNodes(s); return s.Status().latest() },
			"al2023@latest v20260911, 0 older", time.Minute)
		auditInOrder(s, "For the others nothing is due.")
		s.Check("aliases", aliases, behind)
		s.Check("node of the pool workload", of("workload").node(), before)
		runs(s, "workload", "1.35-v20260801")
		s.Contains("doctor, before an upgrade of Kubernetes", doctor, "EC2NodeClass workload is al2023@v20260801 by its age")
	})

	s.Chapter("With @latest all follow, and with a dated alias they stay", func() {
		for _, is := range []struct{ alias, release string }{{"al2023@latest", "v20260911"}, {"al2023@v20260801", "v20260801"}} {
			s.Reconciled(s.Put(alias, is.alias))
			restartController(s)
			runs(s, "workload", "1.35-"+is.release)
		}
		publish(s, "al2023@v20260828")
		runs(s, "canary", "1.35-v20260828")
		runs(s, "workload", "1.35-v20260801")
	})

	s.Chapter("Kubernetes moves past the alias", func() {
		before := s.Output(of("workload").node())
		s.Contains("doctor, before it", doctor, without)
		s.Type("aws eks update-cluster-version --name demo --kubernetes-version 1.36 --query update.status --output text")
		s.Until("the cluster", upgraded, "1.36\tACTIVE", time.Minute)
		audit(s)
		s.Await("the status warns", func() string { return fmt.Sprint(s.Status().says(without)) }, "true", time.Minute)
		restartController(s)
		runs(s, "canary", "1.36-v20260828")
		s.Check("node of the pool workload", of("workload").node(), before)
		s.Type("kubectl -n shop scale deployment on-workload --replicas 4")
		s.Until("pods of the pool workload, which still launches", of("workload").runs(), "4", 2*time.Minute)
		runs(s, "workload", "1.35-v20260801")
	})

	s.Chapter("By its age, the alias has images for every Kubernetes", func() {
		s.Reconciled(s.Put(alias, "al2023@latest-7d"))
		s.Omits(without)
		s.Check("aliases", aliases, "build al2023@v20260828;canary al2023@latest;workload al2023@v20260828;")
		restartController(s)
		runs(s, "workload", "1.36-v20260828")
	})
}

// publish makes a release the one that @latest names. Karpenter looks that up once a day, and when it starts.
func publish(s *Script, alias string) {
	s.sandbox(http.MethodPost, "latest?alias="+alias, nil, nil)
	restartController(s)
}

// restartController replaces Karpenter's pods. Karpenter compares the AMIs of nodes with those of their classes every five minutes, and
// when it starts.
func restartController(s *Script) {
	s.Type("kubectl -n kube-system delete pods -l app.kubernetes.io/name=karpenter")
	s.Until("Karpenter's pods that are ready", controllerReady, "2/2", 2*time.Minute)
}

// runs waits until all nodes of a pool run AMIs of one release for a version of Kubernetes, of any variant.
func runs(s *Script, pool, release string) {
	ids := "kubectl get nodeclaims -l karpenter.sh/nodepool=" + pool + " -o jsonpath='{.items[*].status.imageID}'"
	s.Until("AMIs of the pool "+pool, "aws ec2 describe-images --query 'Images[].Name' --output text --image-ids $("+ids+
		") | tr '\\t' '\\n' | grep -o '[0-9.]*-v[0-9]*$' | sort -u | paste -sd' '", release, 5*time.Minute)
}

// latest returns what the status tells of the alias @latest.
func (s Status) latest() string {
	for _, l := range s.Latest {
		return fmt.Sprintf("%s %s, %d older", l.Alias, l.Image, l.Older)
	}
	return ""
}
