package story

import (
	"fmt"
	"net/http"
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
	nodesEntry = `aws eks describe-access-entry --cluster-name demo --principal-arn "$(aws iam get-role --role-name demo-karpenter-nodes ` +
		`--query Role.Arn --output text)" --query accessEntry.type --output text`
	podsGiven = `kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter ` +
		`-o jsonpath='{.items[*].spec.containers[0].env[?(@.name=="AWS_CONTAINER_CREDENTIALS_FULL_URI")].name}' | wc -w`
)

// setLag sets the seconds of a kind of lag. drawLag restores what the seed determines.
func setLag(s *Script, kind string, seconds int) {
	s.sandbox(http.MethodPost, fmt.Sprintf("lag?kind=%s&seconds=%d", kind, seconds), nil, nil)
}

func drawLag(s *Script, kind string) { s.sandbox(http.MethodPost, "lag?kind="+kind, nil, nil) }

// lagsEnd waits until every write is visible everywhere, except that calls may still find deleted queues, for up to a
// minute. queueLagsEnd waits for these too.
func lagsEnd(s *Script) {
	pendingLags(s, func(kind string) bool { return kind != "deleted-queue" })
}

func queueLagsEnd(s *Script) { pendingLags(s, func(string) bool { return true }) }

func pendingLags(s *Script, counts func(kind string) bool) {
	s.Await("writes that are not visible everywhere", func() string {
		var lags struct {
			Delays []struct {
				Kind    string
				Pending bool
			}
		}
		s.sandbox(http.MethodGet, "lag", nil, &lags)
		pending := map[string]bool{}
		for _, d := range lags.Delays {
			if d.Pending && counts(d.Kind) {
				pending[d.Kind] = true
			}
		}
		return joined(pending)
	}, "", 2*time.Minute)
}

// Lagging turns Karpenter on while every lag has its maximum on AWS, and the permissions of one function take even
// longer. only limits it to some kinds of lag, separated by commas. No pass fails, and a node can join.
func Lagging(s *Script, only string) {
	s.Chapter("On, while AWS is as slow as it gets", func() {
		for _, lag := range slowest {
			if only == "" || strings.Contains(","+only+",", ","+lag.kind+",") {
				setLag(s, lag.kind, lag.seconds)
			}
		}
		if only == "" || only == "controller-policy" {
			s.Say("The function controller has its rights in the cluster after the others.")
			s.sandbox(http.MethodPost, "lag?kind=access-policy&seconds=24&resource=demo/"+s.role("controller"), nil, nil)
		}
		s.Put("karpenter_auth_mode", "true")
		before := s.Status().version
		on(s)
		s.Equal("states meanwhile", s.states(before), "Reconciled")
		s.Check("Karpenter's pods are Ready", controllerReady, "2/2")
		s.Check("access entry of Karpenter's nodes", nodesEntry, "EC2_LINUX")
		single.start(s)
		s.Check("the NodePool of its node", single.where(), "workload")
		single.end(s)
		for _, lag := range slowest {
			drawLag(s, lag.kind)
		}
	})
}

// LateParameter makes a pass read a parameter before the write is visible. The pass that the write's event starts waits
// for it.
func LateParameter(s *Script) {
	s.Chapter("SSM's replicas are behind the event that tells of a write", func() {
		setLag(s, "parameter", 8)
		s.Reconciled(s.Put("karpenter_cpu_limit", "321"))
		s.Check("NodePool's CPU limit", cpuLimit, "321")
		drawLag(s, "parameter")
	})
}

// LingeringEntry gives the nodes an access entry of the wrong type. EKS cannot change the type, so the entry is created
// again while the deleted one is still visible.
func LingeringEntry(s *Script) {
	const nodes = `"$(aws iam get-role --role-name demo-karpenter-nodes --query Role.Arn --output text)"`
	s.Chapter("A deleted access entry lingers", func() {
		tags := s.Output("aws eks describe-access-entry --cluster-name demo --query accessEntry.tags --output json --principal-arn " + nodes)
		s.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + nodes)
		s.Type("aws eks create-access-entry --cluster-name demo --type STANDARD --query accessEntry.type --output text --tags '" + tags +
			"' --principal-arn " + nodes)
		lagsEnd(s)
		setLag(s, "deleted-entry", 15)
		s.FullPass()
		s.Check("access entry of Karpenter's nodes", nodesEntry, "EC2_LINUX")
		s.State("Reconciled")
		drawLag(s, "deleted-entry")
	})
}

// CredentialsLate makes the Pod Identity association take longer than the installation waits. Karpenter's first pods
// are admitted without credentials, and are replaced.
func CredentialsLate(s *Script) {
	s.Chapter("Karpenter's pods are admitted before their association works", func() {
		setLag(s, "pod-identity", 40)
		s.Put("karpenter_auth_mode", "true")
		s.Put("karpenter_enabled", "true")
		s.Until("Karpenter's Deployment", controllerName, "deployment.apps/karpenter", 2*time.Minute)
		s.Until("Karpenter's pods", "kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter -o name | wc -l", "2", time.Minute)
		s.Check("pods with credentials", podsGiven, "0")
		lagsEnd(s)
		s.Until("Karpenter's pods are Ready", controllerReady, "2/2", 3*time.Minute) // pods are replaced once a minute
		s.Check("pods with credentials", podsGiven, "2")
		s.Reconciled()
		s.Says("credentials")
		drawLag(s, "pod-identity")
	})
}

// PoliciesLate makes the controller's policies reach EC2 after Karpenter has used them. Karpenter caches a denial for
// half an hour.
func PoliciesLate(s *Script) {
	const (
		policies = "aws iam list-role-policies --role-name demo-karpenter --query PolicyNames"
		reason   = `kubectl get ec2nodeclass workload -o jsonpath='{.status.conditions[?(@.type=="ValidationSucceeded")].reason}'`
	)
	s.Chapter("EC2 has not heard of the controller's policies", func() {
		setLag(s, "ec2-policies", 0)
		documents := map[string]string{}
		for _, name := range JSON[[]string](s, policies) {
			policy := " --role-name demo-karpenter --policy-name " + name
			documents[policy] = s.Output("aws iam get-role-policy --query PolicyDocument --output json" + policy)
			s.Type("aws iam delete-role-policy" + policy)
		}
		setLag(s, "ec2-policies", 30)
		for policy, document := range documents {
			s.Type("aws iam put-role-policy" + policy + " --policy-document " + quoted(document))
		}
		s.Put("karpenter_node_disk", "61")
		s.Until("Karpenter is denied what it tries", reason+" | grep -c AuthCheckFailed || true", "1", time.Minute)
		lagsEnd(s)
		s.Reconciled()
		s.Check("EC2NodeClass workload is Ready", classReady, "True")
		s.Says("EC2 denied")
		drawLag(s, "ec2-policies")
	})
}
