package story

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// theirs are the pods, the NodePool and the EC2NodeClass of a cluster with a Karpenter that Helm has installed.
const (
	theirPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Resource":"*","Action":["ec2:*","eks:DescribeCluster",` +
		`"iam:*InstanceProfile*","iam:GetRole","iam:PassRole","pricing:GetProducts","sqs:*","ssm:GetParameter"]}]}`
	theirPools = `kubectl apply -f - <<'EOF'
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: KarpenterNodeRole-demo
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: 1000}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 10m}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: 720h
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: orders, namespace: shop}
spec: {minAvailable: 2, selector: {matchLabels: {app: orders}}}
EOF`
	ofTheirs = "-l karpenter.sh/nodepool=default "
)

// apart are three pods that each want a node of their own.
var apart = app{name: "orders", replicas: 3, cpu: `"2"`, spec: `affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: orders}}}`}

// Migrating moves a cluster from a Karpenter 1.8.6 that Helm has installed to Sawhorse, in the steps of
// docs/migrate-karpenter.md. charts is the folder of that version's charts.
func Migrating(s *Script, charts string) {
	installed(s, charts)
	pods, claimed := s.Output(podsNow), s.Output(claimsNow)

	s.Chapter("Sawhorse changes nothing while it runs", func() {
		s.Put("karpenter_auth_mode", "true")
		s.Put("karpenter_enabled", "true")
		s.Rejected("demo-karpenter")
		s.Check("access mode", accessMode, "CONFIG_MAP")
	})

	s.Chapter("Their controller goes, and their nodes stay", func() {
		s.Say("Sawhorse gives the cluster's own security group the tag too. By their IDs the class keeps the groups that its nodes have.")
		s.Type(`kubectl patch ec2nodeclass default --type merge -p "$(aws ec2 describe-security-groups ` +
			`--filters Name=tag:karpenter.sh/discovery,Values=demo --query '{spec: {securityGroupSelectorTerms: SecurityGroups[].{id: GroupId}}}' ` +
			`--output json)"`)
		s.Type("helm uninstall karpenter --namespace kube-system --wait")
		for _, id := range JSON[[]string](s, "aws eks list-pod-identity-associations --cluster-name demo --namespace kube-system "+
			"--service-account karpenter --query 'associations[].associationId'") {
			s.Type("aws eks delete-pod-identity-association --cluster-name demo --query association.serviceAccount --association-id " + id)
		}
		s.Type("aws iam delete-role-policy --role-name demo-karpenter --policy-name karpenter")
		s.Type("aws iam delete-role --role-name demo-karpenter")
		for _, crd := range []string{
			"ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "nodepools.karpenter.sh",
		} {
			s.Type("kubectl label --overwrite crd " + crd + " sawhorse.dev/rack=demo")
		}
		lagsEnd(s) // or a pass may still see what was deleted, and is Rejected until the next one
		s.Check("pods", podsNow, pods)
		s.Check("NodeClaims", claimsNow, claimed)
	})

	s.Chapter("Sawhorse's controller takes over", func() {
		s.Reconciled(s.Request())
		s.Until("NodePools", poolsReady, "default=True workload=True", time.Minute)
		s.Equal("why Karpenter would replace their nodes", driftedOf(s, "default"), "")
		s.Check("pods", podsNow, pods)
		s.Check("their NodeClaims, beside that of the first node", strings.Replace(claimsNow, "nodeclaims ", "nodeclaims "+ofTheirs, 1), claimed)
	})

	s.Chapter("New nodes are of Sawhorse's pool", func() {
		s.Type(`kubectl patch nodepool default --type merge -p '{"spec":{"limits":{"cpu":"0"}}}'`)
		second := app{name: "more", replicas: 1, cpu: `"2"`}
		second.start(s)
		s.Check("the NodePool of its node", second.where(), "workload")
		s.Equal("why Karpenter would replace their nodes", driftedOf(s, "default"), "")
		second.end(s)
	})

	s.Chapter("Their nodes are drained, one budget at a time", func() {
		s.Equal("least pods of orders available meanwhile, of 3", drained(s), 2)
		s.Until("pods of orders that run", apart.runs(), "3", time.Minute)
		s.Check("the NodePool of their nodes", apart.where(), "workload")
		s.Type("kubectl delete ec2nodeclass default --timeout 60s")
		s.Check("instance profiles", instanceProfiles, "1")
		s.Type("aws iam delete-role --role-name KarpenterNodeRole-demo")
		s.Type(`aws sqs delete-queue --queue-url "$(aws sqs get-queue-url --queue-name demo --query QueueUrl --output text)"`)
	})

	s.Chapter("No instance is left behind", func() {
		s.Type("kubectl -n shop delete pdb orders")
		apart.end(s)
		s.Until("nodes of NodePools", nodes, "", 5*time.Minute)
		s.Await("simulated instances", func() string { return fmt.Sprint(instances(s)) }, "0", time.Minute)
		off(s)
		withoutKarpenter(s)
	})
}

// installed installs Karpenter 1.8.6 as its own guide does, with a NodePool, and pods on its nodes.
func installed(s *Script, charts string) {
	s.Chapter("A cluster with a Karpenter 1.8.6 that Helm has installed", func() {
		for _, one := range []struct{ role, service string }{{"KarpenterNodeRole-demo", "ec2"}, {"demo-karpenter", "pods.eks"}} {
			s.Type("aws iam create-role --role-name " + one.role + " --query Role.Arn --assume-role-policy-document " +
				argument(trusting(one.service+".amazonaws.com", "sts:AssumeRole", "sts:TagSession")))
		}
		s.Type("aws iam put-role-policy --role-name demo-karpenter --policy-name karpenter --policy-document '" + theirPolicy + "'")
		s.Type("aws sqs create-queue --queue-name demo")
		s.Type("aws eks create-pod-identity-association --cluster-name demo --namespace kube-system --service-account karpenter " +
			"--query association.serviceAccount --role-arn $(aws iam get-role --role-name demo-karpenter --query Role.Arn --output text)")
		s.Type("aws ec2 create-tags --tags Key=karpenter.sh/discovery,Value=demo --resources " +
			"$(aws eks describe-nodegroup --cluster-name demo --nodegroup-name system --query nodegroup.subnets --output text) " +
			"$(aws ec2 describe-security-groups --filters Name=group-name,Values=demo-node --query 'SecurityGroups[0].GroupId' --output text)")
		lagsEnd(s)
		s.Type("helm install karpenter-crd " + charts + "/karpenter-crd --namespace kube-system")
		s.Type("helm install karpenter " + charts + "/karpenter --namespace kube-system --set settings.clusterName=demo " +
			"--set settings.interruptionQueue=demo --set controller.image.tag=1.8.6 --set controller.image.digest= --wait --timeout 2m")
		s.Type(theirPools)
		apart.start(s)
		s.Check("the NodePool of their nodes", apart.where(), "default")
		s.Type("kubectl wait nodeclaims " + ofTheirs + "--for=condition=Initialized --timeout=60s")
	})
}

// instances returns the number of simulated instances.
func instances(s *Script) (n int) {
	maps := JSON[list[struct {
		Metadata struct{ Name string }
		Data     map[string]string
	}]](s, "kubectl -n kube-system get configmaps -o json")
	for _, one := range maps.Items {
		if !strings.HasPrefix(one.Metadata.Name, "kwok-aws-instances") {
			continue
		}
		for _, text := range one.Data {
			var some []any
			if err := json.Unmarshal([]byte(text), &some); err != nil {
				s.fail("ConfigMap %s: %v", one.Metadata.Name, err)
			}
			n += len(some)
		}
	}
	return n
}

// drained deletes their NodePool and waits for the end of its nodes. It returns the least number of pods that were
// available meanwhile.
func drained(s *Script) (least int) {
	available := s.recordAvailable(apart)
	s.Type("kubectl delete nodepool default --wait=false")
	s.Until("their NodeClaims", "kubectl get nodeclaims "+ofTheirs+"-o name", "", 5*time.Minute)
	least = apart.replicas - available.missing()
	available.stop()
	s.Check("their NodePool", "kubectl get nodepool default -o name --ignore-not-found", "")
	return least
}
