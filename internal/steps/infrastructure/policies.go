package infrastructure

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// policyFiles are the controller's policies from Karpenter 1.10's CloudFormation template, one file for each managed
// policy of the template. They use the same ${…} for what differs between clusters. They differ from Karpenter's in one
// way: of the account's subnets and security groups, they allow only those with the cluster's discovery tag, so that
// the role cannot launch nodes into other networks.
//
//go:embed policies/*.json
var policyFiles embed.FS

// wantedRole describes a role as it should be.
type wantedRole struct {
	name, description, trust string
	// boundary is the ARN of the permissions boundary.
	boundary string
	// inline are policy documents by name; attached are the ARNs of managed policies.
	inline   map[string]string
	attached []string
}

func roleARN(p *plan.Plan, name string) string {
	return fmt.Sprintf("arn:%s:iam::%s:role%s%s", p.Cluster.Partition, p.Cluster.Account, names.IAMPath, name)
}

func controllerRole(p *plan.Plan) (wantedRole, error) {
	role := wantedRole{
		name: p.Infrastructure.ControllerRole, description: "Karpenter's controller in EKS cluster " + p.Cluster.Name,
		inline: map[string]string{},
	}
	fill := strings.NewReplacer(
		"${Partition}", p.Cluster.Partition, "${Region}", p.Cluster.Region, "${Account}", p.Cluster.Account,
		"${ClusterName}", p.Cluster.Name, "${NodeRoleARN}", roleARN(p, p.Infrastructure.NodeRole),
		"${QueueARN}", fmt.Sprintf("arn:%s:sqs:%s:%s:%s", p.Cluster.Partition, p.Cluster.Region, p.Cluster.Account, p.Queue.Name),
	)
	files, err := policyFiles.ReadDir("policies")
	if err != nil {
		return role, fmt.Errorf("role %s: policies: %w", role.name, err)
	}
	for _, file := range files {
		text, err := policyFiles.ReadFile("policies/" + file.Name())
		if err != nil {
			return role, fmt.Errorf("role %s: policy %s: %w", role.name, file.Name(), err)
		}
		document, err := compact([]byte(fill.Replace(string(text))))
		if err != nil {
			return role, fmt.Errorf("role %s: policy %s: %w", role.name, file.Name(), err)
		}
		role.inline[strings.TrimSuffix(file.Name(), ".json")] = document
	}
	if shared := p.Infrastructure.SharedNetworks; len(shared) > 0 {
		if role.inline["shared-networks"], err = policy(map[string]any{
			"Sid": "AllowSharedNetworkAccessActions", "Effect": "Allow", "Resource": shared, "Action": []string{"ec2:RunInstances", "ec2:CreateFleet"},
		}); err != nil {
			return role, err
		}
	}
	role.trust, err = controllerTrust(p)
	return role, err
}

// controllerTrust allows one service account of this cluster to assume the role: through EKS Pod Identity, which passes
// the cluster, the namespace and the service account as session tags, or through IRSA.
func controllerTrust(p *plan.Plan) (string, error) {
	if p.Infrastructure.PodIdentity {
		return trust(map[string]any{"Service": "pods.eks.amazonaws.com"}, []string{"sts:AssumeRole", "sts:TagSession"}, map[string]any{
			"StringEquals": map[string]any{
				"aws:RequestTag/eks-cluster-arn":            p.Cluster.ARN,
				"aws:RequestTag/kubernetes-namespace":       names.Namespace,
				"aws:RequestTag/kubernetes-service-account": names.ServiceAccount,
			},
		})
	}
	issuer := strings.TrimPrefix(p.Cluster.OIDCIssuer, "https://")
	return trust(map[string]any{"Federated": plan.OIDCProviderARN(p.Cluster)}, []string{"sts:AssumeRoleWithWebIdentity"}, map[string]any{
		"StringEquals": map[string]any{
			issuer + ":aud": names.OIDCClient,
			issuer + ":sub": "system:serviceaccount:" + names.Namespace + ":" + names.ServiceAccount,
		},
	})
}

func nodeRole(p *plan.Plan) (wantedRole, error) {
	service := "ec2.amazonaws.com"
	if p.Cluster.Partition == "aws-cn" {
		service = "ec2.amazonaws.com.cn"
	}
	document, err := trust(map[string]any{"Service": service}, []string{"sts:AssumeRole"}, nil)
	return wantedRole{
		name: p.Infrastructure.NodeRole, description: "Nodes that Karpenter launches for EKS cluster " + p.Cluster.Name,
		trust: document, attached: p.Infrastructure.NodePolicies,
	}, err
}

func trust(principal map[string]any, actions []string, condition map[string]any) (string, error) {
	statement := map[string]any{"Effect": "Allow", "Principal": principal, "Action": actions}
	if condition != nil {
		statement["Condition"] = condition
	}
	return policy(statement)
}

// policy returns a document with one statement.
func policy(statement map[string]any) (string, error) {
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{statement}})
	if err != nil {
		return "", fmt.Errorf("policy: encode: %w", err)
	}
	return string(text), nil
}

// compact returns JSON in the one form that is stored and compared, without white space.
func compact(document []byte) (string, error) {
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	text, err := json.Marshal(value)
	return string(text), err
}
