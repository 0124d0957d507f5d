package story

// Organization deploys the stack for an organization whose policies refuse every role without its path and its boundary,
// and turns Karpenter on and off.
func Organization(s *Script) {
	const (
		company = "arn:aws:iam::000000000000:policy/Company"
		allowed = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","NotAction":"iam:CreateUser","Resource":"*"}]}`
		agent   = "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy"
		// The roles of the stack and of racks, and those of them that have the path and the boundary.
		ours = "aws iam list-roles --output json " +
			"--query \"Roles[?contains(RoleName, 'Sawhorse-') || contains(RoleName, 'demo-karpenter')].RoleName\""
		path = "aws iam get-role --query Role.[Path,PermissionsBoundary.PermissionsBoundaryArn] --output text --role-name "
	)
	s.Chapter("The stack, with a path and a boundary for all roles", func() {
		s.Type("aws iam create-policy --policy-name Company --query Policy.Arn --policy-document '" + allowed + "'")
		stack(s, "destroy --force")
		stack(s, "deploy --require-approval never -c rolePath=/team/ -c boundaryArn="+company+" -c nodePolicyArns="+agent)
		roles := JSON[[]string](s, ours)
		s.Equal("the stack has roles", len(roles) > 10, true)
		for _, role := range roles { // MiniStack's CloudFormation gives roles no boundary
			s.Contains(role, path+role, "/team/\t")
		}
	})

	s.Chapter("A rack", func() {
		s.Put("karpenter_auth_mode", "true")
		on(s)
		for _, role := range []string{"demo-karpenter", "demo-karpenter-nodes"} {
			s.Check(role, path+role, "/team/sawhorse/\t"+company)
		}
		single.start(s)
		s.Check("the NodePool of a pod's node", single.where(), "workload")
		single.end(s)
		s.Put("node_policy_arns", agent+",arn:aws:iam::aws:policy/AdministratorAccess")
		s.Rejected("arn:aws:iam::aws:policy/AdministratorAccess, and the stack's own boundary")
		s.Reconciled(s.Put("node_policy_arns", agent))
	})

	s.Chapter("Another path while Karpenter is on", func() {
		stack(s, "deploy --require-approval never -c boundaryArn="+company+" -c nodePolicyArns="+agent)
		s.Request("full")
		s.Served()
		s.Says("IAM cannot move a role: deploy the stack with the earlier rolePath")
		s.Check("demo-karpenter", path+"demo-karpenter", "/team/sawhorse/\t"+company)
		stack(s, "deploy --require-approval never -c rolePath=/team/ -c boundaryArn="+company+" -c nodePolicyArns="+agent)
		s.Reconciled(s.Request("full"))
	})

	s.Chapter("Off", func() {
		off(s)
		withoutKarpenter(s)
	})
}
