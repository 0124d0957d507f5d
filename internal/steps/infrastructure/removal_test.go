package infrastructure

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// lost is an IAM client whose answers to deletions are lost. The SDK's retry finds nothing and ends as AccessDenied.
type lost struct{ *awsfake.IAM }

var denied = &smithy.GenericAPIError{Code: "AccessDenied",
	Message: "not authorized to perform iam:DeleteRole on arn:aws:iam::123456789012:role/demo-karpenter"}

func (l lost) DeleteRole(ctx context.Context, in *iam.DeleteRoleInput, options ...func(*iam.Options)) (*iam.DeleteRoleOutput, error) {
	_, _ = l.IAM.DeleteRole(ctx, in, options...)
	return nil, denied
}

func (l lost) DeleteInstanceProfile(ctx context.Context, in *iam.DeleteInstanceProfileInput,
	options ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error) {
	_, _ = l.IAM.DeleteInstanceProfile(ctx, in, options...)
	return nil, denied
}

// A deletion whose answer was lost counts as done.
func TestADeletionWhoseAnswerIsLost(t *testing.T) {
	cloud, i := begin()
	run(t, i, wanted(true, true))
	cloud.IAM.Profiles["left"] = &awsfake.Profile{Path: "/karpenter/eu-central-1/demo/x/"}
	i.IAM = lost{cloud.IAM}
	off := wanted(false, true)
	off.Cluster.Gone = true
	run(t, i, off)
	if len(cloud.IAM.Roles) != 0 || len(cloud.IAM.Profiles) != 0 {
		t.Errorf("left: %v, %v", cloud.IAM.Roles, cloud.IAM.Profiles)
	}
}

// lists shows a profile that was deleted seconds ago: a replica of IAM lags.
type lists struct{ *awsfake.IAM }

func (l lists) ListInstanceProfiles(context.Context, *iam.ListInstanceProfilesInput, ...func(*iam.Options)) (
	*iam.ListInstanceProfilesOutput, error) {
	return &iam.ListInstanceProfilesOutput{InstanceProfiles: []types.InstanceProfile{{InstanceProfileName: new("gone"),
		Path: new("/karpenter/eu-central-1/demo/x/"), Roles: []types.Role{{RoleName: new(nodesName)}}}}}, nil
}

// The step waits for a profile that IAM lists and does not have.
func TestAProfileThatIsStillListed(t *testing.T) {
	cloud, i := begin()
	run(t, i, wanted(true, true))
	i.IAM = lists{cloud.IAM}
	off := wanted(false, true)
	off.Cluster.Gone = true
	progress, err := i.Run(t.Context(), off, "")
	if err != nil || progress.Wait != poll || !strings.Contains(progress.Note, "IAM lists instance profile gone") {
		t.Errorf("%+v, %v", progress, err)
	}
	i.IAM = cloud.IAM
	run(t, i, off)
}

// A deletion whose answer was lost, while IAM still returns the role, is waited for. A refusal that lasts ends the
// step.
func TestADeletionWhoseAnswerIsLostLingers(t *testing.T) {
	cloud, i := begin()
	complete(t, cloud, i, wanted(true, true))
	cloud.Pass(time.Hour)
	cloud.Lag.Deleted = 20 * time.Second
	i.IAM = lost{cloud.IAM}
	_, notes := complete(t, cloud, i, wanted(false, true))
	if len(cloud.IAM.Roles) != 0 || strings.Count(notes, "which was deleted moments ago") < 2 {
		t.Errorf("left %v after %s", cloud.IAM.Roles, notes)
	}

	i.IAM = cloud.IAM
	cloud.Lag.Deleted = 0
	complete(t, cloud, i, wanted(true, true))
	cloud.Pass(time.Hour)
	cloud.Fail("IAM.DeleteRole", denied)
	for began := cloud.Now(); ; {
		progress, err := i.Run(t.Context(), wanted(false, true), "")
		if took := cloud.Now().Sub(began); err != nil && took > 0 && took < 4*time.Minute {
			return
		} else if err != nil || took > 4*time.Minute {
			t.Fatalf("%v after %v", err, took)
		}
		cloud.Pass(progress.Wait)
	}
}

// The instance profiles that Karpenter left behind are deleted with the roles; those of other clusters stay. A cluster
// that is gone has no associations.
func TestProfilesThatKarpenterLeft(t *testing.T) {
	for n := range 12 {
		cloud, i := begin()
		run(t, i, wanted(true, true))
		for name, path := range map[string]string{"a": "/karpenter/eu-central-1/demo/1/", "b": "/karpenter/eu-central-1/demo/2/",
			"c": "/karpenter/eu-central-1/demo2/1/", "d": "/karpenter/us-east-1/demo/1/", "e": "/karpenter/eu-central-1/demo/3/"} {
			cloud.IAM.Profiles[name] = &awsfake.Profile{Path: path}
		}
		cloud.IAM.Profiles["a"].Role, cloud.IAM.Profiles["e"].Role = nodesName, "KarpenterNodeRole-demo" // another Karpenter's
		cloud.EKS.Cluster = nil
		off := wanted(false, true)
		off.Cluster.Gone = true
		cloud.FailAt(n, awsfake.Throttling)
		if n > 0 {
			_, _ = i.Run(t.Context(), off, "")
		}
		cloud.FailAt(0, nil)
		if _, err := i.Run(t.Context(), off, ""); err != nil {
			t.Fatalf("after call %d: %v", n, err)
		}
		if left := slices.Sorted(maps.Keys(cloud.IAM.Profiles)); !slices.Equal(left, []string{"c", "d", "e"}) || len(cloud.IAM.Roles) > 0 {
			t.Errorf("after call %d: profiles %v, roles %v", n, left, cloud.IAM.Roles)
		}
	}
}
