package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// MiniStack keeps its state over a restart, except for running executions: they have failed, and
// Step Functions reports that.
func TestARestartKeepsWhatThereIs(t *testing.T) {
	ctx := context.Background()
	arn := role(t, "kept")
	session := need[*sts.AssumeRoleOutput](t)(sts.NewFromConfig(sandbox.Config()).AssumeRole(ctx,
		&sts.AssumeRoleInput{RoleArn: &arn, RoleSessionName: aws.String("kept")})).Credentials
	clusters, _ := cluster(t, "kept")
	successful(t, clusters, "kept", nil,
		need[*eks.UpdateClusterConfigOutput](t)(toMode(t, clusters, "kept", ekstypes.AuthenticationModeApiAndConfigMap)).Update.Id)
	need[*eks.CreateAccessEntryOutput](t)(clusters.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: aws.String("kept"), PrincipalArn: &arn,
	}))
	then, _ := bound(t, "kept", arn)
	update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, clusters, "kept", ekstypes.AuthenticationModeApi)).Update
	if err := put(ssm.NewFromConfig(sandbox.Config()), "/kept/number", "1",
		func(in *ssm.PutParameterInput) { in.AllowedPattern = aws.String("[0-9]") }); err != nil {
		t.Fatal(err)
	}
	next := listen(t, "kept", "default", `{"source":["aws.states"],"detail":{"status":["FAILED"]}}`)
	states := sfn.NewFromConfig(sandbox.Config())
	machine := need[*sfn.CreateStateMachineOutput](t)(states.CreateStateMachine(ctx,
		&sfn.CreateStateMachineInput{Name: aws.String("kept"), RoleArn: aws.String(role(t, "kept-machine")),
			Definition: aws.String(`{"StartAt":"Wait","States":{"Wait":{"Type":"Wait","Seconds":600,"End":true}}}`)}))
	execution := need[*sfn.StartExecutionOutput](t)(states.StartExecution(ctx,
		&sfn.StartExecutionInput{StateMachineArn: machine.StateMachineArn})).ExecutionArn

	if err := sandbox.RestartMiniStack(); err != nil {
		t.Fatal(err)
	}
	if got := next(); got["executionArn"] != *execution {
		t.Errorf("the notice is of %v", got["executionArn"])
	}
	who := need[*sts.GetCallerIdentityOutput](t)(sts.NewFromConfig(sandbox.Config(*session.AccessKeyId, *session.SecretAccessKey,
		*session.SessionToken)).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))
	if !strings.HasSuffix(*who.Arn, ":assumed-role/kept/kept") {
		t.Errorf("the session is that of %s", *who.Arn)
	}
	successful(t, clusters, "kept", nil, update.Id)
	if after, now := bound(t, "kept", arn); after != then || now != then || then == "" {
		t.Errorf("the access entry is bound to role id %q, which is %q now; it was %q", after, now, then)
	}
	want(t, "the pattern", put(ssm.NewFromConfig(sandbox.Config()), "/kept/number", "x", overwrite), "ParameterPatternMismatchException")
}
