package story

import "time"

// ledger runs only on the SPOT group and its copy: both have its label, and no NodePool has. One pod may be evicted at
// a time.
var ledger = app{name: "ledger", replicas: 2, cpu: "50m", spec: "nodeSelector: {team: ledger}"}

// SpotSystemGroup adds a second system group with SPOT capacity to the rack demo. While it is only discovered, it is
// rejected. Once it is named, it is replaced by an ON_DEMAND copy, which takes over its pods and counts under its name.
func SpotSystemGroup(s *Script) {
	const (
		describe = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name "
		budget   = `kubectl apply -f - <<'EOF'
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: ledger, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: ledger}}}
EOF`
		all     = "aws eks list-nodegroups --cluster-name demo --query 'sort(nodegroups)' --output text | tr '\\t' ' '"
		made    = describe + "second-ondemand --query nodegroup."
		onGroup = "kubectl get nodes -o name -l eks.amazonaws.com/nodegroup="
		ready   = `kubectl get nodes -l eks.amazonaws.com/nodegroup=second-ondemand,convox.io/system-node=true ` +
			`-o jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].status}'`
	)
	s.Chapter("A second system group, of SPOT capacity", func() {
		s.Say("Its launch template says more than that of the group system: EKS tries a launch from it, " +
			"with the rights of whoever makes a group.")
		template := s.Output(ofSystem + "launchTemplate.id --output text")
		version := s.Output("aws ec2 create-launch-template-version --launch-template-id " + template +
			" --query LaunchTemplateVersion.VersionNumber --launch-template-data " + argument(spotTemplate(s, template)))
		s.Type(createGroup("second", "--capacity-type SPOT --launch-template id="+template+",version="+version+
			" --scaling-config minSize=1,desiredSize=2,maxSize=3 --labels team=ledger --tags owner=ops"))
		s.Until("its nodes", onGroup+"second | wc -l", "2", time.Minute)
		ledger.start(s)
		s.Type(budget)
		s.Request()
		s.Rejected("write system_node_groups=second,system ")
		s.Check("nothing has changed", all, "build second system")
	})

	s.Chapter("Named, it is replaced", func() {
		s.Reconciled(s.Put("system_node_groups", "system,second"))
		s.Check("node groups", all, "build second-ondemand system")
		s.Says("second-ondemand created as an on-demand copy of second", "second deleted, second-ondemand has taken its place")
		s.Check("the copy's capacity", made+"capacityType --output text", "ON_DEMAND")
		s.Check("its size (min, desired, max)", made+"scalingConfig.'[minSize,desiredSize,maxSize]' --output text | tr '\\t' ' '", "1 2 3")
		s.Check("its template", made+"launchTemplate.id --output text", s.Output(ofSystem+"launchTemplate.id --output text"))
		s.Check("its labels", made+`labels.'[team,"convox.io/system-node"]' --output text | tr '\t' ' '`, "ledger true")
		s.Check("its tags", made+`tags.'[owner,"sawhorse.dev/rack","sawhorse.dev/replaces"]' --output text | tr '\t' ' '`, "ops demo second")
		s.Check("its nodes are Ready", ready, "True True")
		s.Until("nodes of the old group", onGroup+"second", "", time.Minute)
		s.Check("pods of ledger that run", ledger.runs(), "2")
	})

	s.Chapter("The copy counts under the old name", func() {
		unchanged(s)
		s.Check("node groups", all, "build second-ondemand system")
	})

	s.Chapter("And away with it", func() {
		s.Type("kubectl -n shop delete poddisruptionbudget ledger")
		ledger.end(s)
		s.Unset("system_node_groups")
		s.Served()
		s.Type("aws eks delete-nodegroup --cluster-name demo --nodegroup-name second-ondemand --query nodegroup.status --output text")
		s.Until("nodes of the copy", onGroup+"second-ondemand", "", 2*time.Minute)
		s.Until("node groups", all, "build system", time.Minute)
		s.Reconciled(s.Request("full"))
		s.Until("Karpenter's pods are Ready", controllerReady, "2/2", 2*time.Minute)
	})
}

// spotTemplate returns the data of a version of a launch template that says more than its first version.
func spotTemplate(s *Script, template string) object {
	groups := JSON[[]string](s, "aws ec2 describe-launch-template-versions --versions 1 --launch-template-id "+template+
		" --query LaunchTemplateVersions[0].LaunchTemplateData.SecurityGroupIds")
	var tags []object
	for _, kind := range []string{"instance", "volume", "network-interface"} {
		tags = append(tags, object{"ResourceType": kind, "Tags": []object{{"Key": "team", "Value": "ledger"}}})
	}
	return object{
		"KeyName": "ops", "Placement": object{"GroupName": "close"}, "SecurityGroupIds": groups, "TagSpecifications": tags,
		"CapacityReservationSpecification": object{
			"CapacityReservationTarget": object{"CapacityReservationId": "cr-0123456789abcdef0"},
		},
		"LicenseSpecifications": []object{{
			"LicenseConfigurationArn": "arn:aws:license-manager:us-east-1:000000000000:license-configuration:lic-0123456789abcdef0",
		}},
		"BlockDeviceMappings": []object{{"DeviceName": "/dev/xvdb", "Ebs": object{"SnapshotId": "snap-0123456789abcdef0"}}},
	}
}
