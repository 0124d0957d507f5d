package story

import "time"

// ledger runs only on the SPOT group and its copy: both have its label, and no NodePool has. One pod may be evicted at
// a time.
var ledger = app{name: "ledger", replicas: 2, cpu: "50m", spec: "nodeSelector: {team: ledger}"}

// SpotSystemGroup adds a second system group with SPOT capacity to the rack demo. While it is only discovered, it is
// rejected. Once it is named, it is replaced by an ON_DEMAND copy, which takes over its pods and counts under its name.
func SpotSystemGroup(t *Teller) {
	const (
		describe = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name "
		of       = describe + "system --query nodegroup."
		create   = `aws eks create-nodegroup --cluster-name demo --nodegroup-name second --capacity-type SPOT --node-role "$(` + of +
			`nodeRole --output text)" --subnets $(` + of + `subnets --output text) ` +
			`--launch-template "id=$(` + of +
			`launchTemplate.id --output text),version=2" --instance-types m5.large --scaling-config minSize=1,desiredSize=2,maxSize=3 ` +
			`--labels team=ledger --tags owner=ops --query nodegroup.status --output text`
		groups = `$(aws ec2 describe-launch-template-versions --launch-template-id $(` + of +
			`launchTemplate.id --output text) --versions 1 ` +
			`--query 'LaunchTemplateVersions[0].LaunchTemplateData.SecurityGroupIds' --output json)`
		template = `aws ec2 create-launch-template-version --launch-template-id $(` + of +
			`launchTemplate.id --output text) --query LaunchTemplateVersion.VersionNumber ` +
			`--launch-template-data '{"KeyName":"ops","Placement":{"GroupName":"close"},` +
			`"CapacityReservationSpecification":{"CapacityReservationTarget":{"CapacityReservationId":"cr-0123456789abcdef0"}},` +
			`"LicenseSpecifications":[{"LicenseConfigurationArn":"arn:aws:license-manager:us-east-1:000000000000:` +
			`license-configuration:lic-0123456789abcdef0"}],` +
			`"BlockDeviceMappings":[{"DeviceName":"/dev/xvdb","Ebs":{"SnapshotId":"snap-0123456789abcdef0"}}],"TagSpecifications":[` +
			`{"ResourceType":"instance","Tags":[{"Key":"team","Value":"ledger"}]},` +
			`{"ResourceType":"volume","Tags":[{"Key":"team","Value":"ledger"}]},` +
			`{"ResourceType":"network-interface","Tags":[{"Key":"team","Value":"ledger"}]}],"SecurityGroupIds":'"` + groups + `"'}'`
		budget = `kubectl apply -f - <<'EOF'
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: ledger, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: ledger}}}
EOF`
		request = bus +
			`'[{"EventBusName":"sawhorse","Source":"operator","DetailType":"Rack Reconcile Requested","Detail":"{\"rack\":\"demo\"}"}]'`
		all     = "aws eks list-nodegroups --cluster-name demo --query 'sort(nodegroups)' --output text | tr '\\t' ' '"
		made    = describe + "second-ondemand --query nodegroup."
		onGroup = "kubectl get nodes -o name -l eks.amazonaws.com/nodegroup="
		ready   = `kubectl get nodes -l eks.amazonaws.com/nodegroup=second-ondemand,convox.io/system-node=true ` +
			`-o jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].status}'`
	)
	t.Chapter("A second system group, of SPOT capacity")
	t.Say("Its launch template says more than that of the group system: EKS tries a launch from it, " +
		"with the rights of whoever makes a group.")
	t.Type(template)
	t.Type(create)
	t.Until("its nodes", onGroup+"second | wc -l", "2", time.Minute)
	ledger.start(t)
	t.Type(budget)
	t.Check("request", request, "0")
	t.Until("status", state, "Rejected", time.Minute)
	t.Contains("the sentence", status, "write system_node_groups=second,system ")
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("nothing has changed", all, "build second system")

	t.Chapter("Named, it is replaced")
	t.Type(put + "system_node_groups --value system,second --type String")
	t.Until("node groups", all, "build second-ondemand system", 4*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Contains("it tells of the copy", status, "second-ondemand created as an on-demand copy of second")
	t.Contains("and of the end of the group", status, "second deleted, second-ondemand has taken its place")
	t.Check("the copy's capacity", made+"capacityType --output text", "ON_DEMAND")
	t.Check("its size (min, desired, max)", made+"scalingConfig.'[minSize,desiredSize,maxSize]' --output text | tr '\\t' ' '", "1 2 3")
	t.Check("its template", made+"launchTemplate.id --output text", t.Ask(of+"launchTemplate.id --output text"))
	t.Check("its labels", made+`labels.'[team,"convox.io/system-node"]' --output text | tr '\t' ' '`, "ledger true")
	t.Check("its tags", made+`tags.'[owner,"sawhorse.dev/rack","sawhorse.dev/replaces"]' --output text | tr '\t' ' '`, "ops demo second")
	t.Check("its nodes are Ready", ready, "True True")
	t.Until("nodes of the old group", onGroup+"second", "", time.Minute)
	t.Check("pods of ledger that run", ledger.runs(), "2")

	t.Chapter("The copy counts under the old name")
	unchanged(t)
	t.Check("node groups", all, "build second-ondemand system")

	t.Chapter("And away with it")
	t.Type("kubectl -n shop delete poddisruptionbudget ledger")
	ledger.end(t)
	t.Type(put + "system_node_groups --value unset")
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Type("aws eks delete-nodegroup --cluster-name demo --nodegroup-name second-ondemand --query nodegroup.status --output text")
	t.Until("nodes of the copy", onGroup+"second-ondemand", "", 2*time.Minute)
	t.Until("node groups", all, "build system", time.Minute)
	t.Check("request", fullPass, "0")
	t.Until("Karpenter's pods are Ready", controllerReady, "2/2", 2*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
}
