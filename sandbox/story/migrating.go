package story

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// theirs are the pods, the NodePool and the EC2NodeClass of a cluster with a Karpenter that Helm has installed.
const (
	theirPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Resource":"*","Action":["ec2:*","eks:DescribeCluster",` +
		`"iam:*InstanceProfile*","iam:GetRole","iam:PassRole","pricing:GetProducts","sqs:*","ssm:GetParameter"]}]}`
	theirTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"%s.amazonaws.com"},` +
		`"Action":["sts:AssumeRole","sts:TagSession"]}]}`
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
	ofTheirs  = "-l karpenter.sh/nodepool=default "
	instances = `kubectl -n kube-system get configmaps -o json | python3 -c '
import json, sys
maps = [m for m in json.load(sys.stdin)["items"] if m["metadata"]["name"].startswith("kwok-aws-instances")]
print(sum(len(json.loads(text)) for m in maps for text in (m.get("data") or {}).values()))'`
)

// apart are three pods that each want a node of their own.
var apart = app{name: "orders", replicas: 3, cpu: `"2"`, spec: `affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: orders}}}`}

// Migrating moves a cluster from a Karpenter 1.8.6 that Helm has installed to Sawhorse, in the steps of
// docs/migrate-karpenter.md. charts is the folder of that version's charts.
func Migrating(t *Teller, charts string) {
	autoscalerBefore := t.Ask(autoscaler)
	installed(t, charts)
	pods, claimed := t.Ask(podsNow), t.Ask(claimsNow)

	t.Chapter("Sawhorse changes nothing while it runs")
	t.Type(put + "karpenter_auth_mode --value true --type String")
	t.Type(turnOn)
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Contains("it names the role", status, "demo-karpenter")
	t.Check("access mode", accessMode, "CONFIG_MAP")

	t.Chapter("Their controller goes, and their nodes stay")
	began := time.Now()
	t.Type("helm uninstall karpenter --namespace kube-system --wait")
	t.Type(`for id in $(aws eks list-pod-identity-associations --cluster-name demo --namespace kube-system --service-account karpenter ` +
		`--query 'associations[].associationId' --output text); do ` +
		`aws eks delete-pod-identity-association --cluster-name demo --association-id "$id" --query association.serviceAccount; done`)
	t.Type("aws iam delete-role-policy --role-name demo-karpenter --policy-name karpenter")
	t.Type("aws iam delete-role --role-name demo-karpenter")
	t.Type("kubectl --namespace kube-system delete secrets -l owner=helm,name=karpenter-crd")
	for _, crd := range []string{
		"ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "nodepools.karpenter.sh",
	} {
		t.Type("kubectl label --overwrite crd " + crd + " app.kubernetes.io/managed-by=Helm")
		t.Type("kubectl annotate --overwrite crd " + crd +
			" meta.helm.sh/release-name=karpenter-crd meta.helm.sh/release-namespace=kube-system")
	}
	t.Check("pods", podsNow, pods)
	t.Check("NodeClaims", claimsNow, claimed)

	t.Chapter("Sawhorse's controller takes over")
	t.Check("request", event, "0")
	t.Until("NodePools", poolsReady, "default=True workload=True", 5*time.Minute)
	t.Note("without a controller", time.Since(began))
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("pods", podsNow, pods)
	t.Check("NodeClaims", claimsNow, claimed)

	t.Chapter("New nodes are of Sawhorse's pool")
	t.Type(`kubectl patch nodepool default --type merge -p '{"spec":{"limits":{"cpu":"0"}}}'`)
	second := app{name: "more", replicas: 1, cpu: `"2"`}
	second.start(t)
	t.Check("the NodePool of its node", second.where(), "workload")
	second.end(t)

	t.Chapter("Their nodes are drained, one budget at a time")
	watched := drained(t)
	t.Check("least pods of orders available meanwhile, of 3", watched, "2")
	t.Until("pods of orders that run", apart.runs(), "3", time.Minute)
	t.Check("the NodePool of their nodes", apart.where(), "workload")
	t.Type("kubectl delete ec2nodeclass default --timeout 60s")
	t.Check("instance profiles", instanceProfiles, "1")
	t.Type("aws iam delete-role --role-name KarpenterNodeRole-demo")
	t.Type(`aws sqs delete-queue --queue-url "$(aws sqs get-queue-url --queue-name demo --query QueueUrl --output text)"`)

	t.Chapter("No instance is left behind")
	t.Type("kubectl -n shop delete pdb orders")
	apart.end(t)
	t.Until("nodes of NodePools", nodes, "", 5*time.Minute)
	t.Until("simulated instances", instances, "0", time.Minute)
	off(t)
	withoutKarpenter(t, autoscalerBefore)
}

// installed installs Karpenter 1.8.6 as its own guide does, with a NodePool, and pods on its nodes.
func installed(t *Teller, charts string) {
	t.Chapter("A cluster with a Karpenter 1.8.6 that Helm has installed")
	for _, one := range []struct{ role, service string }{{"KarpenterNodeRole-demo", "ec2"}, {"demo-karpenter", "pods.eks"}} {
		t.Type("aws iam create-role --role-name " + one.role + " --query Role.Arn --assume-role-policy-document '" +
			fmt.Sprintf(theirTrust, one.service) + "'")
	}
	t.Type("aws iam put-role-policy --role-name demo-karpenter --policy-name karpenter --policy-document '" + theirPolicy + "'")
	t.Type("aws sqs create-queue --queue-name demo")
	t.Type("aws eks create-pod-identity-association --cluster-name demo --namespace kube-system --service-account karpenter " +
		"--query association.serviceAccount --role-arn $(aws iam get-role --role-name demo-karpenter --query Role.Arn --output text)")
	t.Type("aws ec2 create-tags --tags Key=karpenter.sh/discovery,Value=demo --resources " +
		"$(aws eks describe-nodegroup --cluster-name demo --nodegroup-name system --query nodegroup.subnets --output text) " +
		"$(aws ec2 describe-security-groups --filters Name=group-name,Values=demo-node --query 'SecurityGroups[0].GroupId' --output text)")
	known(t)
	t.Type("helm install karpenter-crd " + charts + "/karpenter-crd --namespace kube-system")
	t.Type("helm install karpenter " + charts + "/karpenter --namespace kube-system --set settings.clusterName=demo " +
		"--set settings.interruptionQueue=demo --set controller.image.tag=1.8.6 --set controller.image.digest= --wait --timeout 2m")
	t.Type(theirPools)
	apart.start(t)
	t.Check("the NodePool of their nodes", apart.where(), "default")
	t.Type("kubectl wait nodeclaims " + ofTheirs + "--for=condition=Initialized --timeout=60s")
}

// drained deletes their NodePool and waits for the end of its nodes. It returns the command that prints the least number
// of pods that were available meanwhile.
func drained(t *Teller) string {
	least := 3
	t.Type("kubectl delete nodepool default --wait=false")
	began := time.Now()
	for time.Since(began) < 5*time.Minute && t.Ask("kubectl get nodeclaims "+ofTheirs+"-o name") != "" {
		if n, err := strconv.Atoi(strings.TrimSpace(t.Ask(apart.runs()))); err == nil {
			least = min(least, n)
		}
	}
	t.Note("their nodes drained", time.Since(began))
	t.Check("their NodeClaims", "kubectl get nodeclaims "+ofTheirs+"-o name", "")
	t.Check("their NodePool", "kubectl get nodepool default -o name --ignore-not-found", "")
	return fmt.Sprintf("echo %d", least)
}
