package story

import (
	"strings"
	"time"
)

const (
	karpenterVersion = "aws ssm get-parameter --name /sawhorse/racks/demo/outputs/karpenter_version --query Parameter.Value --output text"
	controllerImages = `kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter ` +
		`-o jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sed 's/@.*//; s/.*://' | sort -u | paste -sd' '`
	// podsNow prints each pod of the workload with its restarts and its node.
	podsNow = `kubectl -n shop get pods ` +
		`-o jsonpath='{range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount} {.spec.nodeName}{"\n"}{end}' | sort`
	claimsNow = `kubectl get nodeclaims -o jsonpath='{range .items[*]}{.metadata.uid} {.status.nodeName}{"\n"}{end}' | sort`
	// hashed prints the versions of the hashes of the NodeClaims' classes, whether each hash is the class's own, and the
	// reasons why nodes are Drifted.
	hashed = `kubectl get nodeclaims,ec2nodeclasses -o json | python3 -c '
import json, sys
key = "karpenter.k8s.aws/ec2nodeclass-hash"
items = json.load(sys.stdin)["items"]
classes = {o["metadata"]["name"]: o["metadata"]["annotations"] for o in items if o["kind"] == "EC2NodeClass"}
found = set()
for claim in (o for o in items if o["kind"] == "NodeClaim"):
    mine, its = claim["metadata"]["annotations"], classes[claim["spec"]["nodeClassRef"]["name"]]
    found.add((mine[key + "-version"], "same" if mine[key] == its[key] else "other"))
    found.update(("Drifted", c["reason"]) for c in claim["status"]["conditions"] if c["type"] == "Drifted" and c["status"] == "True")
print(*sorted(" ".join(f) for f in found), sep=", ")'`
)

// Versions changes the rack's Karpenter to 1.15.1 and back to 1.10.0 while pods run on its nodes. Neither change restarts
// a pod or replaces a node.
func Versions(t *Teller) {
	t.Chapter("Pods on nodes of Karpenter 1.10.0")
	onQuietNodes(t)
	t.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=workload --for=condition=Initialized --timeout=60s")
	t.Check("version in force", karpenterVersion, "1.10.0")
	t.Check("hashes", hashed, "v4 same")
	pods, claimed := t.Ask(podsNow), t.Ask(claimsNow)

	t.Chapter("Up to 1.15.1")
	changed(t, "1.15.1", "up")
	t.Check("the plan names no node that would be replaced", status+" | grep -c ' replace' || true", "0")
	t.Check("the pods", podsNow, pods)
	t.Check("the NodeClaims", claimsNow, claimed)
	t.Until("each NodeClaim has the new hash of its class", hashed, "v6 same", time.Minute)
	t.Say("Karpenter looks at each node within five minutes.")
	t.wait(5*time.Minute + 10*time.Second)
	t.Check("no node is Drifted", hashed, "v6 same")
	t.Check("the pods", podsNow, pods)
	t.Check("the NodeClaims", claimsNow, claimed)
	more := app{name: "more", replicas: 1, cpu: `"3"`}
	more.start(t)
	t.Check("the new version launches, too: the NodePool of the node", more.where(), "workload")
	more.end(t)
	t.Until("nodes of NodePools", nodes+" | wc -l", "3", 3*time.Minute)
	unchanged(t)

	t.Chapter("Down to 1.10.0")
	changed(t, "1.10.0", "down")
	t.Until("each NodeClaim has the old hash again", hashed, "v4 same", time.Minute)
	t.Check("CRDs stay at the newer version", "kubectl get crd capacitybuffers.autoscaling.x-k8s.io -o name",
		"customresourcedefinition.apiextensions.k8s.io/capacitybuffers.autoscaling.x-k8s.io")
	t.Check("the pods", podsNow, pods)
	t.Check("the NodeClaims", claimsNow, claimed)
	unchanged(t)
}

// onQuietNodes starts pods on nodes that only drift would replace.
func onQuietNodes(t *Teller) {
	t.Say("Without consolidation, only drift would replace nodes.")
	request(t, `{"rack":"demo","set":{"karpenter_consolidation_enabled":"false"}}`)
	t.Until("status", state, "Reconciled", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	apart.start(t)
	t.Check("the NodePool of their nodes", apart.where(), "workload")
}

// changed writes karpenter_version and waits until that version is in force and its controller runs.
func changed(t *Teller, version, direction string) {
	began := time.Now()
	t.Type(put + "karpenter_version --type String --value " + version)
	t.Type("sawhorse watch demo")
	t.Note(direction, time.Since(began))
	t.Check("status", state, "Reconciled")
	t.Check("version in force", karpenterVersion, version)
	t.Check("images of the controller's pods", controllerImages, version)
	t.Check("Karpenter's pods are Ready", controllerReady, "2/2")
	t.Check("NodePools", poolsReady, "build=True workload=True")
}

// Withdrawn writes versions of Karpenter that do not work: each time the version before comes back by itself, the
// status says why, and the version is not tried again.
func Withdrawn(t *Teller) {
	t.Chapter("Pods on nodes of Karpenter 1.10.0")
	onQuietNodes(t)
	pods, claimed := t.Ask(podsNow), t.Ask(claimsNow)

	t.Chapter("An image that cannot be pulled")
	withdrawn(t, "1.14.3", map[string]string{}, "ImagePullBackOff")
	t.Check("the pods", podsNow, pods)
	t.Check("the NodeClaims", claimsNow, claimed)

	t.Chapter("Not tried again")
	since := t.Ask(releaseRevision)
	repair(t)
	t.Check("status", state, "Reconciled")
	t.Contains("the status still says so", status, "write karpenter_version again")
	t.Check("Helm's revision", releaseRevision, since)
	t.Type(put + "karpenter_version --type String --value 1.10.0")
	t.Until("status", state, "Reconciled", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("written as the version that runs, it is forgotten", status+" | grep -c 'karpenter_version again' || true", "0")

	t.Chapter("A controller that ends at its start")
	t.Say("The cluster is not registered for zonal shift, and a controller that is to respect it ends with that. 1.10.0 does not know it.")
	withdrawn(t, "1.15.1", map[string]string{"karpenter_controller_config": `{"settings":{"enableZonalShift":true}}`}, "CrashLoopBackOff")
	t.Check("the pods", podsNow, pods)
	t.Check("the NodeClaims", claimsNow, claimed)
	request(t, `{"rack":"demo","unset":["karpenter_controller_config","karpenter_version"]}`)
	t.Until("status", state, "Reconciled", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)

	t.Chapter("A class that the new version does not accept")
	t.Say("1.15 rejects an EC2NodeClass with an annotation whose value it cannot read. 1.10.0 does not know the annotation, which is " +
		"no parameter, so that Sawhorse cannot know of it before.")
	t.Type("kubectl annotate ec2nodeclass workload " + annotationOf115 + "=many")
	withdrawn(t, "1.15.1", map[string]string{}, annotationOf115)
	t.Check("the pods", podsNow, pods)
	t.Check("the NodeClaims", claimsNow, claimed)
	t.Type("kubectl annotate ec2nodeclass workload " + annotationOf115 + "-")
	request(t, `{"rack":"demo","unset":["karpenter_version"]}`)
	t.Until("status", state, "Reconciled", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)

	t.Chapter("A controller without a right")
	t.Say("The permissions boundary does not let 1.15 list instance types, and the controller ends without them.")
	withhold(t, "ec2:DescribeInstanceTypes", "karpenter.sh-1.15.")
	withdrawn(t, "1.15.1", map[string]string{}, "CrashLoopBackOff")
	t.Check("the pods", podsNow, pods)
	t.Check("the NodeClaims", claimsNow, claimed)
	giveBack(t)
	request(t, `{"rack":"demo","unset":["karpenter_version"]}`)
	t.Until("status", state, "Reconciled", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	apart.end(t) // so that the next script can turn Karpenter off
	t.Until("the pods have gone", "kubectl -n shop get pods -l app=orders -o name", "", time.Minute)
}

// annotationOf115 says how GPUs are shared between pods. 1.15 reads "many" as no such way.
const annotationOf115 = "karpenter.k8s.aws/nvidia-consumable-capacity"

// releaseRevision prints how often Helm has changed the controller's release.
const releaseRevision = `helm -n kube-system list -o json --filter '^karpenter$' | ` +
	`python3 -c 'import json,sys; print(json.load(sys.stdin)[0]["revision"])'`

// withdrawn writes a version that fails, together with other parameters, and waits until 1.10.0 is back.
func withdrawn(t *Teller, version string, set map[string]string, reason string) {
	began := time.Now()
	set["karpenter_version"] = version
	request(t, encoded(map[string]any{"rack": "demo", "set": set}))
	t.Until("the new image", controllerImages+" | grep -c "+strings.ReplaceAll(version, ".", `\.`)+" || true", "1", 2*time.Minute)
	t.Until("status", state, "Failed", 15*time.Minute)
	t.Until("the pass has ended", running, "0", 5*time.Minute)
	t.Note("until it is back", time.Since(began))
	t.Type("sawhorse status demo || true")
	t.Contains("the status says what failed", status, version)
	t.Contains("and why", status, reason)
	t.Check("version in force", karpenterVersion, "1.10.0")
	t.Check("images of the controller's pods", controllerImages, "1.10.0")
	t.Check("Karpenter's pods are Ready", controllerReady, "2/2")
	t.Until("NodePools", poolsReady, "build=True workload=True", time.Minute)
}

// boundary is a shell expression for the ARN of the controllers' permissions boundary.
const boundary = `"$(aws cloudformation describe-stack-resources --stack-name Sawhorse --output text ` +
	`--query "StackResources[?starts_with(LogicalResourceId, 'ControllerBoundary')].PhysicalResourceId")"`

// withhold denies controllers with a user agent an action, until giveBack. Other controllers keep it. It changes the
// permissions boundary because Sawhorse deletes other policies of its roles.
func withhold(t *Teller, action, agent string) {
	bound(t, ` | python3 -c 'import json,sys; d = json.load(sys.stdin); d["Statement"].append({"Effect": "Deny", "Action": "`+action+
		`", "Resource": "*", "Condition": {"StringLike": {"aws:UserAgent": "*`+agent+`*"}}}); print(json.dumps(d))'`)
}

// giveBack makes a further version of the boundary. MiniStack does not know SetDefaultPolicyVersion.
func giveBack(t *Teller) { bound(t, "") }

// bound puts another version of the boundary into force: the first one, with a change by a shell command.
func bound(t *Teller, change string) {
	t.Type(`aws iam create-policy-version --set-as-default --policy-arn ` + boundary + ` --policy-document ` +
		`"$(aws iam get-policy-version --version-id v1 --query PolicyVersion.Document --policy-arn ` + boundary + change + `)"` +
		` --query PolicyVersion.VersionId`)
}

// NewDefault deploys a stack whose default version of Karpenter is 1.15.1 over this one, while a rack runs 1.10.0: that
// rack keeps its version, and one that turns Karpenter on gets the new default. folder has the stack's template.
func NewDefault(t *Teller, folder string) {
	t.Chapter("A Sawhorse with another default is deployed")
	t.Check("version in force", karpenterVersion, "1.10.0")
	since := t.Ask(releaseRevision)
	stack(t, "deploy --require-approval never --app "+folder)
	t.Check("it is another one than this checkout's: stacks", unlike, "with differences: 1")
	repair(t)
	t.Check("status", state, "Reconciled")
	t.Check("version in force", karpenterVersion, "1.10.0")
	t.Check("images of the controller's pods", controllerImages, "1.10.0")
	t.Check("Helm's revision", releaseRevision, since)

	t.Chapter("Off, and on for the first time again")
	off(t)
	on(t)
	t.Check("version in force", karpenterVersion, "1.15.1")
	t.Check("images of the controller's pods", controllerImages, "1.15.1")
	single.start(t)
	t.Check("the NodePool of its node", single.where(), "workload")
	single.end(t)

	t.Chapter("Back to a Sawhorse with the older default")
	stack(t, "deploy --require-approval never --app "+ours)
	repair(t)
	t.Check("status", state, "Reconciled")
	t.Check("version in force", karpenterVersion, "1.15.1")
	t.Check("images of the controller's pods", controllerImages, "1.15.1")
	off(t)
}
