package story

import (
	"fmt"
	"strings"
	"time"
)

// slowest lists the lags of turning Karpenter on, each with its maximum on AWS in seconds.
var slowest = []struct {
	kind    string
	seconds int
}{
	{"eks-role", 12}, {"iam", 5}, {"access-entry", 8}, {"access-policy", 8}, {"pod-identity", 12}, {"ec2-policies", 12}, {"queue", 1},
	{"parameter", 1}, {"tags", 3},
}

const (
	// told prints the states that the rack's status has had since a version of it.
	told = `aws ssm get-parameter-history --name /sawhorse/racks/demo/status --query 'Parameters[?Version>` + "`%s`" +
		`].Value' --output text | grep -o '"state":"[A-Za-z]*"' | sort -u | paste -sd' '`
	version    = "aws ssm get-parameter --name /sawhorse/racks/demo/status --query Parameter.Version --output text"
	nodesEntry = `aws eks describe-access-entry --cluster-name demo --principal-arn "$(aws iam get-role --role-name demo-karpenter-nodes ` +
		`--query Role.Arn --output text)" --query accessEntry.type --output text`
	podsGiven = `kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter ` +
		`-o jsonpath='{.items[*].spec.containers[0].env[?(@.name=="AWS_CONTAINER_CREDENTIALS_FULL_URI")].name}' | wc -w`
)

// late sets the seconds of a kind of lag, and drawn restores what the seed determines.
func late(t *Teller, kind string, seconds int) {
	t.Type(fmt.Sprintf(`curl -sf -X POST "$AWS_ENDPOINT_URL/_sandbox/lag?kind=%s&seconds=%d"`, kind, seconds))
}

func drawn(t *Teller, kind string) {
	t.Type(fmt.Sprintf(`curl -sf -X POST "$AWS_ENDPOINT_URL/_sandbox/lag?kind=%s"`, kind))
}

// known waits until every write is visible everywhere. A deleted queue may be found for longer.
func known(t *Teller) { seen(t, `d["kind"] != "deleted-queue"`) }

// gone waits for deleted queues too. Calls find one for up to a minute.
func gone(t *Teller) { seen(t, "True") }

func seen(t *Teller, which string) {
	t.Until("writes that are not seen everywhere",
		`curl -sf "$AWS_ENDPOINT_URL/_sandbox/lag" | python3 -c 'import json,sys; print(sum(d["pending"] and `+which+
			` for d in json.load(sys.stdin)["delays"]))'`,
		"0", 2*time.Minute)
}

// Lagging turns Karpenter on while every lag has its maximum on AWS, and the permissions of one function take even
// longer. only limits it to some kinds of lag, separated by commas. No pass fails, and a node can join.
func Lagging(t *Teller, only string) {
	t.Chapter("On, while AWS is as slow as it gets")
	for _, lag := range slowest {
		if only == "" || strings.Contains(","+only+",", ","+lag.kind+",") {
			late(t, lag.kind, lag.seconds)
		}
	}
	if only == "" || only == "controller-policy" {
		t.Say("The function controller has its rights in the cluster after the others.")
		t.Type(`curl -sf -X POST "$AWS_ENDPOINT_URL/_sandbox/lag?kind=access-policy&seconds=24&resource=demo/"` + roleOf("controller"))
	}
	t.Type(put + "karpenter_auth_mode --value true --type String > /dev/null")
	before := t.Ask(version + " 2>/dev/null || echo 0")
	on(t)
	t.Check("what the status has said meanwhile", fmt.Sprintf(told, before), `"state":"Reconciled"`)
	t.Check("Karpenter's pods are Ready", controllerReady, "2/2")
	t.Check("access entry of Karpenter's nodes", nodesEntry, "EC2_LINUX")
	single.start(t)
	t.Check("the NodePool of its node", single.where(), "workload")
	single.end(t)
	for _, lag := range slowest {
		drawn(t, lag.kind)
	}
}

// LateParameter makes a pass read a parameter before the write is visible. The pass that the write's event starts waits
// for it.
func LateParameter(t *Teller) {
	t.Chapter("SSM's replicas are behind the event that tells of a write")
	late(t, "parameter", 8)
	t.Type(put + "karpenter_cpu_limit --value 321 --type String --query Version")
	t.Until("NodePool's CPU limit", cpuLimit, "321", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	drawn(t, "parameter")
}

// LingeringEntry gives the nodes an access entry of the wrong type. EKS cannot change the type, so the entry is created
// again while the deleted one is still visible.
func LingeringEntry(t *Teller) {
	const nodes = `"$(aws iam get-role --role-name demo-karpenter-nodes --query Role.Arn --output text)"`
	t.Chapter("A deleted access entry lingers")
	tags := t.Ask("aws eks describe-access-entry --cluster-name demo --query accessEntry.tags --output json --principal-arn " + nodes)
	t.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + nodes)
	t.Type("aws eks create-access-entry --cluster-name demo --type STANDARD --query accessEntry.type --output text --tags '" + tags +
		"' --principal-arn " + nodes)
	known(t)
	late(t, "deleted-entry", 15)
	repair(t)
	t.Check("access entry of Karpenter's nodes", nodesEntry, "EC2_LINUX")
	t.Check("status", state, "Reconciled")
	drawn(t, "deleted-entry")
}

// CredentialsLate makes the Pod Identity association take longer than the installation waits. Karpenter's first pods
// are admitted without credentials, and are replaced.
func CredentialsLate(t *Teller) {
	t.Chapter("Karpenter's pods are admitted before their association works")
	late(t, "pod-identity", 40)
	t.Type(put + "karpenter_auth_mode --value true --type String > /dev/null")
	t.Type(turnOn)
	t.Until("Karpenter's Deployment", controllerName, "deployment.apps/karpenter", 2*time.Minute)
	t.Until("Karpenter's pods", "kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter -o name | wc -l", "2", time.Minute)
	t.Check("pods with credentials", podsGiven, "0")
	known(t)
	t.Until("Karpenter's pods are Ready", controllerReady, "2/2", time.Minute)
	t.Check("pods with credentials", podsGiven, "2")
	t.Until("status", state, "Reconciled", 2*time.Minute)
	t.Contains("the status tells of it", status, "credentials")
	drawn(t, "pod-identity")
}

// PoliciesLate makes the controller's policies reach EC2 after Karpenter has used them. Karpenter caches a denial for
// half an hour.
func PoliciesLate(t *Teller) {
	const (
		policies = `for policy in $(aws iam list-role-policies --role-name demo-karpenter --query PolicyNames --output text); do `
		role     = `--role-name demo-karpenter --policy-name "$policy"`
		reason   = `kubectl get ec2nodeclass workload -o jsonpath='{.status.conditions[?(@.type=="ValidationSucceeded")].reason}'`
		class    = `kubectl get ec2nodeclass workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`
	)
	t.Chapter("EC2 has not heard of the controller's policies")
	folder := t.Ask("mktemp -d")
	late(t, "ec2-policies", 0)
	t.Type(policies + "aws iam get-role-policy " + role + ` --query PolicyDocument --output json > "` + folder +
		`/$policy"; aws iam delete-role-policy ` + role + "; done")
	late(t, "ec2-policies", 30)
	t.Type(`for policy in $(ls "` + folder + `"); do aws iam put-role-policy ` + role + ` --policy-document "file://` + folder +
		`/$policy"; done; rm -r "` + folder + `"`)
	t.Type(put + "karpenter_node_disk --value 61 --type String --query Version")
	t.Until("Karpenter is denied what it tries", reason+" | grep -c AuthCheckFailed || true", "1", time.Minute)
	known(t)
	t.Until("EC2NodeClass workload is Ready", class, "True", 2*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Contains("the status tells of it", status, "EC2 denied")
	drawn(t, "ec2-policies")
}
