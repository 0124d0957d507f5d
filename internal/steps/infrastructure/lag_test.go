package infrastructure

import (
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// complete runs the step to its end as the state machine does. It returns the changes and what the step waited for.
func complete(t *testing.T, cloud *awsfake.Cloud, i *Step, p *plan.Plan) (changes, notes string) {
	t.Helper()
	for range 40 {
		progress, did := run(t, i, p)
		changes += did + "\n"
		if progress.Wait == 0 {
			return changes, notes
		}
		if progress.Wait > 30*time.Second {
			t.Fatalf("one wait of %v", progress.Wait)
		}
		notes += progress.Note + "\n"
		cloud.Pass(progress.Wait)
	}
	t.Fatalf("not done after 40 calls: %s", notes)
	return "", ""
}

// AWS does not know everywhere what was created seconds ago: the step waits, and creates everything once.
func TestWaitsForWhatWasJustMade(t *testing.T) {
	for _, c := range []struct {
		what string
		lag  awsfake.Lag
		note string
	}{
		{"EKS does not know the roles", awsfake.Lag{Principals: 40 * time.Second}, "EKS does not know role"},
		{"IAM does not find the roles", awsfake.Lag{Roles: 9 * time.Second}, "IAM does not know role"},
		{"IAM takes the roles for roles without a path", awsfake.Lag{Roles: 9 * time.Second, Denied: true}, "role"},
		{"all of that", awsfake.Lag{Principals: 40 * time.Second, Roles: 9 * time.Second, Denied: true, Entries: 8 * time.Second}, "role"},
	} {
		for _, podIdentity := range []bool{true, false} {
			t.Run(c.what, func(t *testing.T) {
				cloud, i := begin()
				cloud.Lag = c.lag
				changes, notes := complete(t, cloud, i, wanted(true, podIdentity))
				if !strings.Contains(notes, c.note) {
					t.Errorf("waited for %s", notes)
				}
				for _, once := range []string{"created role " + controllerName + ",", "created role " + nodesName, "created access entry"} {
					if n := strings.Count(strings.ReplaceAll(changes, "\n", ","), once); n != 1 {
						t.Errorf("%s: %d times in %s", once, n, changes)
					}
				}
				unchanged(t, cloud, i, wanted(true, podIdentity))
			})
		}
	}
}

// IAM may still return a role that was deleted seconds ago. Karpenter is turned on again in that time: the step waits,
// and creates the roles anew.
func TestADeletedRoleLingers(t *testing.T) {
	for _, lag := range []time.Duration{30 * time.Second, 150 * time.Second} {
		for _, podIdentity := range []bool{true, false} {
			cloud, i := begin()
			complete(t, cloud, i, wanted(true, podIdentity))
			cloud.Pass(time.Hour)
			cloud.Lag.Deleted = lag
			complete(t, cloud, i, wanted(false, podIdentity))
			changes, notes := complete(t, cloud, i, wanted(true, podIdentity))
			if !strings.Contains(notes, "which was deleted less than three minutes ago") || strings.Count(changes, "created role") != 2 ||
				len(cloud.IAM.Roles) != 2 {
				t.Errorf("changes %s\nnotes %s", changes, notes)
			}
			unchanged(t, cloud, i, wanted(true, podIdentity))
		}
	}
}

// A role that was made anew is not taken for the one of its name that was deleted before.
func TestADeletedRoleIsMadeAnewAtOnce(t *testing.T) {
	cloud, i := begin()
	complete(t, cloud, i, wanted(true, true))
	cloud.Pass(time.Hour)
	complete(t, cloud, i, wanted(false, true))
	changes, notes := complete(t, cloud, i, wanted(true, true))
	if strings.Contains(notes, "which was deleted") || strings.Count(changes, "created role") != 2 {
		t.Errorf("changes %s\nnotes %s", changes, notes)
	}
}

// A pod that is admitted before EKS and EC2 know of the credentials never gets them. So the step is not done before the
// credentials are old enough, also after they were replaced.
func TestTheCredentialsAreOldEnough(t *testing.T) {
	cloud, i := begin()
	complete(t, cloud, i, wanted(true, true))
	made := *cloud.EKS.Associations["a-1"].CreatedAt
	if age := cloud.Now().Sub(made); age < i.Delay {
		t.Errorf("done when the association was %v old", age)
	}
	cloud.EKS.Associations["a-1"].RoleArn = new("arn:other")
	complete(t, cloud, i, wanted(true, true))
	if age := cloud.Now().Sub(*cloud.EKS.Associations["a-1"].ModifiedAt); age < i.Delay {
		t.Errorf("done when the association was repaired %v ago", age)
	}
	cloud.Pass(time.Hour)
	for name := range cloud.IAM.Roles {
		delete(cloud.IAM.Roles, name)
		complete(t, cloud, i, wanted(true, true))
		if age := cloud.Now().Sub(*cloud.EKS.Entries[nodesARN].CreatedAt); age < i.Delay {
			t.Errorf("done when the entry was %v old", age)
		}
	}
}

// The step fails at once if AWS refuses for another reason, or long after the role was created.
func TestFailsAtOnceWhereTimeIsNoCure(t *testing.T) {
	for _, c := range []struct {
		what, says string
		spoil      func(*awsfake.Cloud)
	}{
		{"a policy that does not exist", "node_policy_arns has it", func(c *awsfake.Cloud) {
			c.IAM.Missing = map[string]bool{"arn:aws:iam::aws:policy/B": true}
		}},
		{"a role that EKS never takes", "aws iam get-role --role-name " + controllerName, func(c *awsfake.Cloud) {
			for _, role := range c.IAM.Roles {
				role.CreateDate = new(c.Now().Add(-time.Hour))
			}
			clear(c.EKS.Entries)
			clear(c.EKS.Associations)
			c.Lag.Principals = 2 * time.Hour
		}},
		{"a right that is missing", "AccessDenied", func(c *awsfake.Cloud) {
			for _, role := range c.IAM.Roles {
				role.CreateDate = new(c.Now().Add(-time.Hour))
				role.PermissionsBoundary = nil
			}
			c.FailAt(2, denied)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			cloud, i := begin()
			if c.what != "a policy that does not exist" {
				complete(t, cloud, i, wanted(true, true))
			}
			c.spoil(cloud)
			progress, err := i.Run(t.Context(), wanted(true, true), "")
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v", progress, err)
			}
		})
	}
}

// An entry that has just been replaced is not deleted because EKS still shows the one before.
func TestAReplacedEntryStays(t *testing.T) {
	cloud, i := begin()
	complete(t, cloud, i, wanted(true, true))
	cloud.EKS.Entries[nodesARN].Type = new("STANDARD")
	complete(t, cloud, i, wanted(true, true))
	replaced := cloud.EKS.Entries[nodesARN]
	earlier := *replaced
	earlier.Type = new("STANDARD")
	cloud.EKS.Entries[nodesARN] = &earlier
	if progress, changes := run(t, i, wanted(true, true)); changes != "" || progress.Wait == 0 {
		t.Errorf("%s, %+v", changes, progress)
	}
	cloud.EKS.Entries[nodesARN] = replaced
	unchanged(t, cloud, i, wanted(true, true))

	t.Log("what is shown for longer is what there is")
	cloud.Pass(resource.Lag)
	cloud.EKS.Entries[nodesARN] = &earlier
	if _, changes := run(t, i, wanted(true, true)); !strings.HasPrefix(changes, "deleted access entry") {
		t.Error(changes)
	}
}

// A deleted access entry may remain for a while: it blocks the creation of the new one, or EKS still returns it.
func TestADeletedEntryLingers(t *testing.T) {
	for what, lag := range map[string]awsfake.Lag{
		"it is in use":       {Entries: 12 * time.Second},
		"it is still shown":  {Shown: 9 * time.Second},
		"first one and then": {Entries: 4 * time.Second, Shown: 11 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			cloud, i := begin()
			complete(t, cloud, i, wanted(true, true))
			cloud.EKS.Entries[nodesARN].Type = new("STANDARD")
			cloud.Lag = lag
			changes, notes := complete(t, cloud, i, wanted(true, true))
			if entry := cloud.EKS.Entries[nodesARN]; entry == nil || *entry.Type != "EC2_LINUX" {
				t.Errorf("entry %+v, changes %s\nnotes %s", entry, changes, notes)
			}
			unchanged(t, cloud, i, wanted(true, true))
		})
	}
}
