package story

import (
	"slices"
	"time"
)

const (
	controllerImages = `kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter ` +
		`-o jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sed 's/@.*//; s/.*://' | sort -u | paste -sd' '`
	controllerGeneration = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.metadata.generation}'"
	// podsNow prints each pod of the workload with its restarts and its node.
	podsNow = `kubectl -n shop get pods ` +
		`-o jsonpath='{range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount} {.spec.nodeName}{"\n"}{end}' | sort`
	claimsNow = `kubectl get nodeclaims -o jsonpath='{range .items[*]}{.metadata.uid} {.status.nodeName}{"\n"}{end}' | sort`
)

// Versions changes the rack's Karpenter to each version of the catalogue in turn and back to 1.10.0 while pods run on its nodes.
// No change restarts a pod or replaces a node.
func Versions(s *Script) {
	var pods, claimed string
	s.Chapter("Pods on nodes of Karpenter 1.10.0", func() {
		onQuietNodes(s)
		s.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=workload --for=condition=Initialized --timeout=60s")
		s.Check("version in force", output("karpenter_version"), "1.10.0")
		s.Equal("hashes", hashes(s), "v4 same")
		pods, claimed = s.Output(podsNow), s.Output(claimsNow)
	})

	launches := func() {
		more := app{name: "more", replicas: 1, cpu: `"3"`}
		more.start(s)
		s.Check("the new version launches, too: the NodePool of the node", more.where(), "workload")
		more.end(s)
		s.Until("nodes of NodePools", nodes+" | wc -l", "3", 3*time.Minute)
	}
	for _, version := range []string{"1.12.1", "1.14.3"} {
		s.Chapter("Up to "+version, func() {
			changed(s, version)
			s.Omits(" replace")
			s.Await("each NodeClaim has the hash of its class", func() string { return hashes(s) }, "v5 same", time.Minute)
			launches()
			s.Check("the pods", podsNow, pods)
			s.Check("the NodeClaims", claimsNow, claimed)
		})
	}

	s.Chapter("Up to 1.15.1", func() {
		changed(s, "1.15.1")
		s.Omits(" replace")
		s.Check("the pods", podsNow, pods)
		s.Check("the NodeClaims", claimsNow, claimed)
		s.Await("each NodeClaim has the new hash of its class", func() string { return hashes(s) }, "v6 same", time.Minute)
		examined(s)
		s.Equal("no node is Drifted", hashes(s), "v6 same")
		s.Check("the pods", podsNow, pods)
		s.Check("the NodeClaims", claimsNow, claimed)
		launches()
		unchanged(s)
	})

	s.Chapter("Down to 1.10.0", func() {
		changed(s, "1.10.0")
		s.Await("each NodeClaim has the old hash again", func() string { return hashes(s) }, "v4 same", time.Minute)
		s.Check("CRDs stay at the newer version", "kubectl get crd capacitybuffers.autoscaling.x-k8s.io -o name",
			"customresourcedefinition.apiextensions.k8s.io/capacitybuffers.autoscaling.x-k8s.io")
		s.Check("the pods", podsNow, pods)
		s.Check("the NodeClaims", claimsNow, claimed)
		unchanged(s)
		quietNodesEnd(s)
	})
}

// onQuietNodes starts pods on nodes that only drift would replace.
func onQuietNodes(s *Script) {
	s.Say("Without consolidation, only drift would replace nodes.")
	s.Reconciled(s.Put("karpenter_consolidation_enabled", "false"))
	apart.start(s)
	s.Check("the NodePool of their nodes", apart.where(), "workload")
	s.Until("nodes of NodePools, without the first ones", nodes+" | wc -l", "3", 3*time.Minute)
}

// quietNodesEnd ends the pods, so that the next script can turn Karpenter off, or has none but its own.
func quietNodesEnd(s *Script) {
	apart.end(s)
	s.Until("the pods have gone", "kubectl -n shop get pods -l app=orders -o name", "", time.Minute)
}

// changed writes karpenter_version and waits until that version is in force and its controller runs.
func changed(s *Script, version string) {
	s.Reconciled(s.Put("karpenter_version", version))
	s.Check("version in force", output("karpenter_version"), version)
	s.Check("images of the controller's pods", controllerImages, version)
	s.Check("Karpenter's pods are Ready", controllerReady, "2/2")
	s.Check("NodePools", poolsReady, "build=True workload=True")
}

// Withdrawn writes versions of Karpenter that do not work: each time the version before comes back by itself, the
// status says why, and the version is not tried again.
func Withdrawn(s *Script) {
	var pods, claimed string
	s.Chapter("Pods on nodes of Karpenter 1.10.0", func() {
		onQuietNodes(s)
		pods, claimed = s.Output(podsNow), s.Output(claimsNow)
	})

	s.Chapter("An image that cannot be pulled", func() {
		s.Type("kubectl -n default create configmap unpublished --from-literal=1.14.3=")
		withdrawn(s, "1.14.3", map[string]string{}, "ImagePullBackOff")
		s.Check("the pods", podsNow, pods)
		s.Check("the NodeClaims", claimsNow, claimed)
	})

	s.Chapter("Not tried again", func() {
		since := s.Output(controllerGeneration)
		s.FullPass()
		s.State("Reconciled")
		s.Says("write karpenter_version again")
		s.Equal("generation of the Deployment", s.Output(controllerGeneration), since)
		s.Type("kubectl -n default delete configmap unpublished")
		s.Reconciled(s.Put("karpenter_version", "1.14.3"))
		s.Omits("karpenter_version again")
		s.Check("images of the controller's pods", controllerImages, "1.14.3")
		s.Reconciled(s.Put("karpenter_version", "1.10.0"))
	})

	s.Chapter("A controller that ends at its start", func() {
		s.Say("The cluster is not registered for zonal shift, and a controller that is to respect it ends with that. 1.10.0 does not know it.")
		withdrawn(s, "1.15.1", map[string]string{"karpenter_controller_config": `{"settings":{"enableZonalShift":true}}`},
			"CrashLoopBackOff", logged)
		s.Check("the pods", podsNow, pods)
		s.Check("the NodeClaims", claimsNow, claimed)
		s.Reconciled(s.Change(nil, "karpenter_controller_config", "karpenter_version"))
	})

	s.Chapter("A class that the new version does not accept", func() {
		s.Say("1.15 rejects an EC2NodeClass with an annotation whose value it cannot read. 1.10.0 does not know the annotation, which is " +
			"no parameter, so that Sawhorse cannot know of it before.")
		s.Type("kubectl annotate ec2nodeclass workload " + annotationOf115 + "=many")
		withdrawn(s, "1.15.1", map[string]string{}, annotationOf115)
		s.Check("the pods", podsNow, pods)
		s.Check("the NodeClaims", claimsNow, claimed)
		s.Type("kubectl annotate ec2nodeclass workload " + annotationOf115 + "-")
		s.Reconciled(s.Change(nil, "karpenter_version"))
	})

	s.Chapter("A controller without a right", func() {
		s.Say("The permissions boundary does not let 1.15 list instance types, and the controller ends without them.")
		restore := withhold(s, "ec2:DescribeInstanceTypes", "karpenter.sh-1.15.")
		withdrawn(s, "1.15.1", map[string]string{}, "CrashLoopBackOff", logged)
		s.Check("the pods", podsNow, pods)
		s.Check("the NodeClaims", claimsNow, claimed)
		restore()
		s.Reconciled(s.Change(nil, "karpenter_version"))
		quietNodesEnd(s)
	})
}

// logged begins what a reason has from the log of a controller, which goes with its pods.
const logged = "the last errors in the log of pod karpenter-"

// annotationOf115 says how GPUs are shared between pods. 1.15 reads "many" as no such way.
const annotationOf115 = "karpenter.k8s.aws/nvidia-consumable-capacity"

// hashes returns the versions of the hashes of the NodeClaims' classes, whether each hash is the class's own, and the
// reasons why nodes are Drifted.
func hashes(s *Script) string {
	const key = "karpenter.k8s.aws/ec2nodeclass-hash"
	classes, found := map[string]string{}, map[string]bool{}
	for _, class := range JSON[list[nodeClaim]](s, "kubectl get ec2nodeclasses -o json").Items {
		classes[class.Metadata.Name] = class.Metadata.Annotations[key]
	}
	for _, claim := range nodeClaims(s).Items {
		kind := "other"
		if claim.Metadata.Annotations[key] == classes[claim.Spec.NodeClassRef.Name] {
			kind = "same"
		}
		found[claim.Metadata.Annotations[key+"-version"]+" "+kind] = true
		if reason := claim.drifted(); reason != "" {
			found["Drifted "+reason] = true
		}
	}
	return joined(found)
}

// withdrawn writes a version that fails, together with other parameters, and waits until 1.10.0 is back.
func withdrawn(s *Script, version string, set map[string]string, reasons ...string) {
	set["karpenter_version"] = version
	s.Change(set)
	s.Until("a pod has the new image", controllerImages+" | grep -o -F "+version+" || true", version, 2*time.Minute)
	s.Failed(append(reasons, version)...)
	s.Type("sawhorse status demo || true")
	s.Check("version in force", output("karpenter_version"), "1.10.0")
	s.Check("images of the controller's pods", controllerImages, "1.10.0")
	s.Check("Karpenter's pods are Ready", controllerReady, "2/2")
	s.Until("NodePools", poolsReady, "build=True workload=True", time.Minute)
}

// withhold denies controllers with a user agent an action, until the returned function is called. Other controllers keep
// it. It changes the permissions boundary because Sawhorse deletes other policies of its roles.
func withhold(s *Script, action, agent string) (restore func()) {
	arn := s.Output("aws cloudformation describe-stack-resources --stack-name Sawhorse --output text " +
		`--query "StackResources[?starts_with(LogicalResourceId, 'ControllerBoundary')].PhysicalResourceId"`)
	document := JSON[struct {
		Version   string
		Statement []object
	}](s, "aws iam get-policy-version --version-id v1 --query PolicyVersion.Document --policy-arn "+arn)
	// MiniStack does not know SetDefaultPolicyVersion, so each change is a further version.
	put := func(document any) {
		s.Type("aws iam create-policy-version --set-as-default --query PolicyVersion.VersionId --policy-arn " + arn + " --policy-document " +
			argument(document))
	}
	whole := document
	document.Statement = append(slices.Clone(document.Statement), object{"Effect": "Deny", "Action": action, "Resource": "*",
		"Condition": object{"StringLike": object{"aws:UserAgent": "*" + agent + "*"}}})
	put(document)
	return func() { put(whole) }
}

// NewDefault deploys a stack whose default version of Karpenter is 1.15.1 over this one, while a rack runs 1.10.0: that
// rack keeps its version, and one that turns Karpenter on gets the new default. folder has the stack's template.
func NewDefault(s *Script, folder string) {
	s.Chapter("A Sawhorse with another default is deployed", func() {
		s.Check("version in force", output("karpenter_version"), "1.10.0")
		since := s.Output(controllerGeneration)
		stack(s, "deploy --require-approval never --app "+folder)
		s.Check("it is another one than this checkout's: stacks", unlike, "with differences: 1")
		s.FullPass()
		s.State("Reconciled")
		s.Check("version in force", output("karpenter_version"), "1.10.0")
		s.Check("images of the controller's pods", controllerImages, "1.10.0")
		s.Equal("generation of the Deployment", s.Output(controllerGeneration), since)
	})

	s.Chapter("Off, and on for the first time again", func() {
		off(s)
		on(s)
		s.Check("version in force", output("karpenter_version"), "1.15.1")
		s.Check("images of the controller's pods", controllerImages, "1.15.1")
		single.start(s)
		s.Check("the NodePool of its node", single.where(), "workload")
		single.end(s)
	})

	s.Chapter("Back to a Sawhorse with the older default", func() {
		stack(s, "deploy --require-approval never --app "+ours)
		s.FullPass()
		s.State("Reconciled")
		s.Check("version in force", output("karpenter_version"), "1.15.1")
		s.Check("images of the controller's pods", controllerImages, "1.15.1")
		off(s)
	})
}
