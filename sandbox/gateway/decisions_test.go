package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// stack has a role that may read the parameters of one folder.
const stack = `{"Resources":{"ReaderRole":{"Type":"AWS::IAM::Role","Properties":{"RoleName":"reader",
	"AssumeRolePolicyDocument":` + trust + `,"Policies":[{"PolicyName":"p","PolicyDocument":{"Version":"2012-10-17","Statement":[
	{"Effect":"Allow","Action":"ssm:GetParameter","Resource":"arn:aws:ssm:us-east-1:000000000000:parameter/read/*"}]}}]}}}}`

// call makes a call of the query protocol, for services without a client in this package.
func call(t *testing.T, service string, parameters url.Values) {
	t.Helper()
	request := need[*http.Request](t)(http.NewRequest(http.MethodPost, sandbox.URL, strings.NewReader(parameters.Encode())))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=root")
	response := need[*http.Response](t)(http.DefaultClient.Do(request))
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%v: %s", parameters, response.Status)
	}
}

func TestDecisionsAboutTheStacksRolesAreKept(t *testing.T) {
	ctx, root := context.Background(), iam.NewFromConfig(sandbox.Config())
	call(t, "cloudformation", url.Values{
		"Action": {"CreateStack"}, "StackName": {"Sawhorse"}, "TemplateBody": {stack}, "Capabilities.member.1": {"CAPABILITY_NAMED_IAM"},
	})
	eventually(t, "the role of the stack", func() bool {
		_, err := root.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: aws.String("reader"), PolicyName: aws.String("p")})
		return err == nil
	})
	c := need[*sts.AssumeRoleOutput](t)(sts.NewFromConfig(sandbox.Config()).AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: aws.String("arn:aws:iam::000000000000:role/reader"), RoleSessionName: aws.String("s")})).Credentials
	parameters := ssm.NewFromConfig(sandbox.Config(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken))
	read := func(names ...string) {
		for _, name := range names {
			_, _ = parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
		}
	}
	read("/read/before")
	ask(t, http.MethodPost, "/_sandbox/script?name=One", "")
	read("/read/a", "/read/a", "/other")
	ask(t, http.MethodPost, "/_sandbox/script?name=Two", "")
	read("/read/a")
	_, err := parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/read/a")})
	want(t, "a parameter that is not there", err, "ParameterNotFound")
	policy := policyOf([]string{"ssm:DeleteParameter *"})
	need[*iam.PutRolePolicyOutput](t)(root.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: aws.String("reader"), PolicyName: aws.String("p"), PolicyDocument: &policy,
	}))
	read("/read/b") // rejected by a policy that a script has changed

	var kept []string
	for i, line := range strings.Split(strings.TrimSpace(string(need[[]byte](t)(os.ReadFile(sandbox.Decisions)))), "\n") {
		var one struct {
			Template, Script, Role, Decision string
			Denied                           bool
			Roles                            map[string][]struct{ Actions []string }
			Context                          struct {
				Resource string `json:"resource_arn"`
			}
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if i == 0 {
			if len(one.Template) != 64 || len(one.Roles["ReaderRole"]) != 1 || one.Roles["ReaderRole"][0].Actions[0] != "ssm:GetParameter" {
				t.Errorf("the first line: %s", line)
			}
			continue
		}
		denied := map[bool]string{true: "refused", false: "done"}[one.Denied]
		kept = append(kept,
			strings.Join([]string{
				one.Script, one.Role, one.Context.Resource[strings.Index(one.Context.Resource, "/"):], one.Decision, denied,
			}, " "))
	}
	if got, wanted := strings.Join(kept, ", "), "One ReaderRole /read/a Allow done, One ReaderRole /other ImplicitDeny refused, "+
		"Two ReaderRole /read/a Allow done"; got != wanted {
		t.Errorf("kept %s, want %s", got, wanted)
	}
}
