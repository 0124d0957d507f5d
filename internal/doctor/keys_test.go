package doctor

import "fmt"

const (
	controllerARN = "arn:aws:iam::111122223333:role/sawhorse/prod-karpenter"
	scalingARN    = "arn:aws:iam::111122223333:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
)

// key encrypts nodes' volumes with a customer managed key that has this policy and these grantees.
func key(policy string, grantees ...string) func(*Observed) {
	return func(o *Observed) { o.Keys = []Key{{ID: "key-1", State: "Enabled", Policy: policy, Grantees: grantees}} }
}

func allow(principal, action string) string {
	return fmt.Sprintf(`{"Statement":[{"Effect":"Allow","Principal":%s,"Action":%s,"Resource":"*"}]}`, principal, action)
}

var keyCases = []example{
	{"encryption", "as EBS's own key", key(allow(`{"AWS":"*"}`, `["kms:Decrypt","kms:CreateGrant"]`)), nil},
	{"encryption", "the word for all", key(allow(`"*"`, `"kms:*"`)), nil},
	{"encryption", "both are named", key(allow(`{"AWS":["`+controllerARN+`","`+scalingARN+`"]}`, `"kms:Create*"`)), nil},
	{"encryption", "a statement and not a list of them", key(`{"Statement":{"Effect":"Allow","Principal":"*","Action":"kms:*"}}`), nil},
	{"encryption", "grants", key(allow(`{"Service":"ec2.amazonaws.com"}`, `"kms:*"`), controllerARN, scalingARN), nil},
	{"encryption", "only Auto Scaling is named", key(allow(`{"AWS":"`+scalingARN+`"}`, `"kms:*"`)),
		[]string{"fails: does not let " + controllerARN}},
	{"encryption", "only Karpenter is named", key(allow(`{"AWS":"`+controllerARN+`"}`, `"kms:*"`)),
		[]string{"warns: does not let " + scalingARN}},
	{"encryption", "the account is named", key(allow(`{"AWS":"arn:aws:iam::111122223333:root"}`, `"kms:*"`)),
		[]string{"fails: " + controllerARN, "warns: " + scalingARN}},
	{"encryption", "another action", key(allow(`"*"`, `"kms:Decrypt"`)), []string{"fails: " + controllerARN, "warns: " + scalingARN}},
	{"encryption", "denied", key(`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"kms:*"}]}`),
		[]string{"fails: " + controllerARN, "warns: " + scalingARN}},
	{"encryption", "no policy", key(``), []string{"fails: " + controllerARN, "warns: " + scalingARN}},
	{"encryption", "the boundary keeps it off", func(o *Observed) {
		key(allow(`"*"`, `"kms:*"`))(o)
		o.Bounded = []string{"kms:CreateGrant"}
	}, []string{"fails: boundary of " + controllerARN + " keeps kms:CreateGrant"}},
	{"encryption", "disabled", func(o *Observed) { o.Keys[0].State = "PendingDeletion" }, []string{"fails: is PendingDeletion"}},
}
