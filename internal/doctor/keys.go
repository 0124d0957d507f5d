package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// scalingRole is the role with which Auto Scaling launches the instances of managed node groups.
const scalingRole = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"

// keyGrant is the action with which EC2 obtains a grant for a volume's key on behalf of the caller that launches the
// instance.
const keyGrant = "kms:CreateGrant"

// KeyActions are the actions that EC2 performs with a volume's key on behalf of the caller that launches the instance,
// and the actions that this requires.
var KeyActions = []string{
	keyGrant, "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo",
}

func encryption(o *Observed, found *findings) {
	principal := func(role string) string {
		return fmt.Sprintf("arn:%s:iam::%s:%s", o.Facts.Cluster.Partition, o.Facts.Cluster.Account, role)
	}
	controller := cmp.Or(o.ControllerRole, principal("role"+ownership.RacksPath("")+ownership.ControllerRole(o.Rack)))
	if len(o.Bounded) > 0 {
		found.add(Fails,
			fmt.Sprintf("the permissions boundary of %s keeps %s from it, whatever the key's policy says", controller,
				strings.Join(o.Bounded, ", ")),
			"Add "+strings.Join(KeyActions, ", ")+" to nodeActions in cdk.json, and deploy Sawhorse again.")
	}
	for _, k := range o.Keys {
		if k.State != "Enabled" {
			found.add(Fails, fmt.Sprintf("KMS key %s, by which nodes' volumes are encrypted, is %s", k.ID, k.State),
				"Enable it, or encrypt with another key.", "aws kms enable-key --key-id "+k.ID)
			continue
		}
		for _, who := range []struct {
			arn       string
			severity  Severity
			does, too string
		}{
			{controller, Fails, "Karpenter launches nodes as it",
				" And deploy Sawhorse with these actions in nodeActions: " +
					"the role's permissions boundary limits what the key's policy gives it."},
			{principal(scalingRole), Warns, "managed node groups launch nodes as it", ""},
		} {
			if k.AWSManaged || k.open(who.arn) {
				continue
			}
			found.add(who.severity, fmt.Sprintf("the policy of KMS key %s does not let %s use it, and %s", k.ID, who.arn, who.does),
				"Add a statement to the key's policy that allows this principal "+strings.Join(KeyActions, ", ")+
					". Naming the account is not enough: the role's own policies have nothing of KMS."+who.too,
				"aws kms get-key-policy --key-id "+k.ID+" --query Policy --output text")
		}
	}
}

// open reports whether a key's policy or grants allow a principal to use it. Conditions count as met: like those of
// EBS's own key, they restrict the use to EC2 and the account.
func (k Key) open(principal string) bool {
	if slices.Contains(k.Grantees, principal) {
		return true
	}
	var policy struct{ Statement oneOrMore[statement] }
	if json.Unmarshal([]byte(k.Policy), &policy) != nil {
		return false
	}
	return slices.ContainsFunc(policy.Statement, func(s statement) bool {
		return s.Effect == "Allow" && slices.ContainsFunc(s.Action, func(a string) bool { return matches(a, keyGrant) }) &&
			slices.ContainsFunc(s.Principal, func(p string) bool { return p == "*" || p == principal })
	})
}

type statement struct {
	Effect    string
	Principal principals
	Action    oneOrMore[string]
}

// matches reports whether an action in a policy covers an action. The policy's action may have wildcards, and case does
// not matter.
func matches(pattern, action string) bool {
	matched, err := path.Match(strings.ToLower(pattern), strings.ToLower(action))
	return err == nil && matched
}

// oneOrMore decodes what policies write as one value or as a list of values.
type oneOrMore[T any] []T

func (o *oneOrMore[T]) UnmarshalJSON(text []byte) error {
	var one T
	if json.Unmarshal(text, &one) == nil {
		*o = []T{one}
		return nil
	}
	return json.Unmarshal(text, (*[]T)(o))
}

// principals are the AWS principals of a statement: "*", or an object with the key AWS.
type principals []string

func (p *principals) UnmarshalJSON(text []byte) error {
	if string(text) == `"*"` {
		*p = []string{"*"}
		return nil
	}
	var kinds struct{ AWS oneOrMore[string] }
	err := json.Unmarshal(text, &kinds)
	*p = principals(kinds.AWS)
	return err
}
