package doctor

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// scalingRole is by what Auto Scaling launches the instances of managed node groups.
const scalingRole = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"

// keyGrant is the action by which EC2 comes to use a key for a volume, on behalf of who launches.
const keyGrant = "kms:CreateGrant"

// KeyActions are what EC2 does with the key of a volume in the name of who launches, and what that takes.
var KeyActions = []string{keyGrant, "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"}

func encryption(o *Observed) []Finding {
	var found []Finding
	principal := func(role string) string {
		return fmt.Sprintf("arn:%s:iam::%s:%s", o.Cluster.Partition, o.Cluster.Account, role)
	}
	controller := principal("role" + names.IAMPath + names.ControllerRole(o.Rack))
	if len(o.Bounded) > 0 {
		found = append(found, finding(Fails, fmt.Sprintf("the permissions boundary of %s keeps %s from it, whatever the key's policy says", controller, strings.Join(o.Bounded, ", ")),
			"Add "+strings.Join(KeyActions, ", ")+" to nodeActions in cdk.json, and deploy Sawhorse again."))
	}
	for _, k := range o.Keys {
		if k.State != "Enabled" {
			found = append(found, finding(Fails, fmt.Sprintf("KMS key %s, by which nodes' volumes are encrypted, is %s", k.ID, k.State), "Enable it, or encrypt with another key.", "aws kms enable-key --key-id "+k.ID))
			continue
		}
		if k.AWSManaged {
			continue
		}
		for _, who := range []struct {
			arn       string
			severity  Severity
			does, too string
		}{
			{controller, Fails, "Karpenter launches nodes as it", " And deploy Sawhorse with these actions in nodeActions: the role's permissions boundary limits what the key's policy gives it."},
			{principal(scalingRole), Warns, "managed node groups launch nodes as it", ""},
		} {
			if k.open(who.arn) {
				continue
			}
			found = append(found, finding(who.severity, fmt.Sprintf("the policy of KMS key %s does not let %s use it, and %s", k.ID, who.arn, who.does),
				"Add a statement to the key's policy that allows this principal "+strings.Join(KeyActions, ", ")+". Naming the account is not enough: the role's own policies have nothing of KMS."+who.too,
				"aws kms get-key-policy --key-id "+k.ID+" --query Policy --output text"))
		}
	}
	return found
}

// open tells whether a key's policy or grants let a principal use it. Conditions are taken to hold: they are about EC2 and the
// account, as EBS's own key has them.
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

// matches tells whether an action of a policy, which may have wildcards and ignores case, takes one in.
func matches(pattern, action string) bool {
	matched, err := path.Match(strings.ToLower(pattern), strings.ToLower(action))
	return err == nil && matched
}

// oneOrMore is what policies write as a value or as a list of values.
type oneOrMore[T any] []T

func (o *oneOrMore[T]) UnmarshalJSON(text []byte) error {
	var one T
	if json.Unmarshal(text, &one) == nil {
		*o = []T{one}
		return nil
	}
	return json.Unmarshal(text, (*[]T)(o))
}

// principals are the AWS principals of a statement: "*", or an object that has them under AWS.
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
