package story

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Commands about the stack. The sandbox's CDK CLI runs in the checkout. .cache/cdk.out is what
// the sandbox has deployed.
const (
	ours    = ".cache/cdk.out"
	unlike  = "cdk diff --app " + ours + counted
	counted = " 2>&1 | grep -o 'with differences: .*'"
	// noFormat is what the status says if a step finds no plan of its version's format.
	noFormat = "there is no plan of format"
	planned  = "aws dynamodb get-item --table-name " + table + ` --key '{"pk":{"S":"plan#demo"},"sk":{"S":"plan"}}' ` +
		"--query Item.pk.S --output text"
	finalizers = "kubectl get ec2nodeclass workload -o jsonpath='{.metadata.finalizers}'"
)

// Upgrade deploys this stack over that of an earlier commit, whose template is in a folder: once while a pass turns off
// the Karpenter that the earlier stack turned on, and once while a pass turns Karpenter on.
func Upgrade(s *Script, earlier string) {
	s.Chapter("The stack of an earlier commit", func() {
		stack(s, "destroy --force --app "+ours)
		stack(s, "deploy --require-approval never --app "+earlier)
		s.Check("it is another one than this checkout's: stacks", unlike, "with differences: 1")
		s.Put("build_node_enabled", "true")
		s.Put("karpenter_auth_mode", "true")
		on(s)
	})

	s.Chapter("Upgraded while a pass turns Karpenter off", func() {
		s.Say("A finalizer on the class makes the pass wait.")
		s.Type(`kubectl patch ec2nodeclass workload --type json -p '[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]'`)
		s.Put("karpenter_enabled", "false")
		s.Until("what the class waits for", finalizers, `["example.com/hold"]`, time.Minute)
		if _, goesOn := upgrade(s); goesOn {
			changeFormat(s)
		}
		s.Failed(noFormat)
		s.Type(`kubectl patch ec2nodeclass workload --type json -p '[{"op":"remove","path":"/metadata/finalizers/0"}]'`)
		s.Say("The next event makes a new plan and goes on from there.")
		s.Reconciled(s.Request())
		s.Check("Karpenter's Deployment", controllerName, "")
		s.Say("What was noted before Karpenter by the earlier version is put back by this one.")
		withoutKarpenter(s)
	})

	s.Chapter("Upgraded while a pass turns Karpenter on", func() {
		stack(s, "destroy --force --app "+ours)
		s.Say("A version before the one that took the CRDs over from Helm wants Helm's marks on them.")
		s.Type("kubectl label --overwrite crd -l sawhorse.dev/rack app.kubernetes.io/managed-by=Helm")
		s.Type("kubectl annotate --overwrite crd -l sawhorse.dev/rack " +
			"meta.helm.sh/release-name=karpenter-crd meta.helm.sh/release-namespace=kube-system")
		stack(s, "deploy --require-approval never --app "+earlier)
		s.Say("Karpenter's pods find no node, and the pass waits for them.")
		s.Type("kubectl get nodes -o name | xargs kubectl cordon")
		s.Put("karpenter_enabled", "true")
		s.Until("Karpenter's Deployment", controllerName, "deployment.apps/karpenter", 3*time.Minute)
		execution, goesOn := upgrade(s)
		s.Type("kubectl get nodes -o name | xargs kubectl uncordon")
		s.Served()
		if !goesOn || s.Status().says(noFormat) {
			s.Request()
			s.Served()
		} else {
			s.Equal("the execution", s.executionStatus(execution), "SUCCEEDED")
		}
		s.State("Reconciled")
		s.Check("NodePool workload is Ready", ready, "True")
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
		s.Check("outputs, of the steps before and of those behind it",
			outputs+" | jq 'del(.baseline_nodes) | length'", "6") // the version before may not record the baseline
	})

	s.Chapter("After it", func() {
		s.Type("sawhorse status demo")
		s.Put("karpenter_cpu_limit", "120")
		s.Served()
		s.Check("NodePool's CPU limit", cpuLimit, "120")
		single.start(s)
		s.Check("the NodePool of its node", single.where(), "workload")
		single.end(s)
		s.Say("The first full pass may bring what is new in this version; the second finds nothing to do.")
		s.FullPass()
		s.Contains("the boundary of the controller's role", boundary, "ControllerBoundary")
		s.Contains("that of the nodes'", strings.Replace(boundary, "demo-karpenter", "demo-karpenter-nodes", 1), "NodeBoundary")
		single.start(s)
		s.Check("Karpenter launches as before: the NodePool of the node", single.where(), "workload")
		single.end(s)
		s.Say("The policies that were boundaries of the earlier version bear no role any more, and CloudFormation has left them.")
		current := JSON[[]string](s, stackBoundaries)
		deleteBoundaries(s, slices.DeleteFunc(JSON[[]string](s, boundaries), func(arn string) bool { return slices.Contains(current, arn) }))
		s.Equal("boundaries are those of this stack", JSON[[]string](s, boundaries), current)
	})

	s.Chapter("A full pass that changes nothing", func() {
		unchanged(s)
		s.Check("made again, the template is still what is deployed: stacks", "cdk diff"+counted, "with differences: 0")
	})
}

// upgrade deploys this stack while a pass waits, and returns the pass's execution. The execution goes on, unless the two
// versions' plans have different formats, or places in the table.
func upgrade(s *Script) (execution string, goesOn bool) {
	execution = s.owner()
	stack(s, "deploy --require-approval never --app "+ours)
	s.Check("what is deployed is this checkout's: stacks", unlike, "with differences: 0")
	if s.Output(planned) == "None" || s.Status().says(noFormat) {
		s.Say("This version finds no plan of its format in its place, and the pass ends with that.")
		return execution, false
	}
	s.Equal("the pass", s.executionStatus(execution), "RUNNING")
	s.Equal("and has the rack", s.owner(), execution)
	return execution, true
}

// owner returns the execution that has the rack's lease.
func (s *Script) owner() string {
	lease, err := s.lease("demo")
	if err != nil {
		s.fail("%v", err)
	}
	return lease.owner
}

// executionStatus returns the status of an execution.
func (s *Script) executionStatus(execution string) string {
	return s.Output("aws stepfunctions describe-execution --execution-arn " + execution + " --query status --output text")
}

// changeFormat gives the rack's plan a format that no version has.
func changeFormat(s *Script) {
	db, table := dynamodb.NewFromConfig(s.env.AWS()), s.table()
	key := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "plan#demo"}, "sk": &types.AttributeValueMemberS{Value: "plan"},
	}
	item, err := db.GetItem(s.ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		s.fail("plan: %v", err)
	}
	packed, _ := item.Item["plan"].(*types.AttributeValueMemberB)
	if packed == nil {
		s.fail("wanted a packed plan, got %v", item.Item)
	}
	var plan object
	unpacked, err := gzip.NewReader(bytes.NewReader(packed.Value))
	if err == nil {
		err = json.NewDecoder(unpacked).Decode(&plan)
	}
	if err != nil {
		s.fail("plan: %v", err)
	}
	plan["format"] = 0
	var text bytes.Buffer
	packer := gzip.NewWriter(&text)
	_, _ = packer.Write([]byte(encoded(plan))) // a Buffer takes everything
	_ = packer.Close()
	if _, err := db.UpdateItem(s.ctx, &dynamodb.UpdateItemInput{
		TableName: &table, Key: key, UpdateExpression: aws.String("SET #plan = :plan"),
		ExpressionAttributeNames:  map[string]string{"#plan": "plan"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":plan": &types.AttributeValueMemberB{Value: text.Bytes()}},
	}); err != nil {
		s.fail("plan: %v", err)
	}
	s.Say("The plan has another format now.")
}

// stack runs a CDK command on the stack, without a line for each resource.
func stack(s *Script, arguments string) {
	command := "cdk " + arguments
	if !strings.Contains(arguments, "--app") { // two CLIs that synthesize to one folder refuse each other
		command += ` -o "$(dirname "$KUBECONFIG")/cdk.out"`
	}
	s.Type(command + " 2>&1 | grep -v ' | '; [ ${PIPESTATUS[0]} = 0 ]")
}
