package access

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// complete runs the step to its end as the state machine does. It returns the changes and what the step waited for.
func (s scene) complete() (changes, notes string) {
	s.Helper()
	for range 40 {
		progress, did := s.run()
		changes += did + "\n"
		if progress.Wait == 0 {
			return changes, notes
		}
		notes += progress.Note + "\n"
		s.cloud.Pass(progress.Wait)
	}
	s.Fatalf("not done after 40 calls: %s", notes)
	return "", ""
}

func opening(t *testing.T, lag awsfake.Lag) scene {
	s := begin(t)
	s.cloud.EKS.Cluster.AccessConfig.AuthenticationMode = types.AuthenticationModeApiAndConfigMap
	s.cloud.Lag = lag
	return s
}

// For some seconds the policies of a new entry can be neither listed nor associated, and EKS does not know a new role.
func TestWaitsForWhatWasJustMade(t *testing.T) {
	for note, lag := range map[string]awsfake.Lag{
		"EKS does not show the access entry of function": {Entries: 8 * time.Second},
		"EKS does not know the role of function":         {Principals: 20 * time.Second},
	} {
		s := opening(t, lag)
		changes, notes := s.complete()
		made := len(functions) + 2*(len(functions)-2) + 1 + 2*2 // and the namespace of the proof, and its roles
		if !strings.Contains(notes, note) || strings.Count(changes, "created") != made {
			t.Errorf("changes %s, notes %s", changes, notes)
		}
		s.unchanged()
	}
}

// A deleted entry may remain for a while: it blocks the creation of the new one, or EKS still returns it.
func TestADeletedEntryLingers(t *testing.T) {
	for what, lag := range map[string]awsfake.Lag{"in use": {Entries: 8 * time.Second}, "shown": {Shown: 4 * time.Second}} {
		t.Run(what, func(t *testing.T) {
			s := opening(t, awsfake.Lag{})
			s.opened()
			s.cloud.EKS.Entries[role("access")].Type = new("EC2_LINUX")
			s.cloud.Lag = lag
			_, notes := s.complete()
			if entry := s.cloud.EKS.Entries[role("access")]; entry == nil || *entry.Type != "STANDARD" || len(entry.Policies) != 1 {
				t.Errorf("entry %+v, notes %s", entry, notes)
			}
			s.unchanged()
		})
	}
}

// A refusal is permanent if the entry has had its policy for long. The error says what is missing.
func TestAnAdministratorIsRefused(t *testing.T) {
	for _, part := range []string{"", "conflicts"} {
		s := opening(t, awsfake.Lag{})
		s.complete()
		s.api.Forbidden = true
		entry := s.cloud.EKS.Entries[role("access")]
		entry.Associated = s.cloud.Now()
		progress, err := s.step.Run(t.Context(), s.plan, part)
		if err != nil || progress.Wait <= 0 || !strings.Contains(progress.Note, "AmazonEKSClusterAdminPolicy") {
			t.Errorf("%q, the policy is new: %+v, %v", part, progress, err)
		}
		s.cloud.Pass(3 * time.Minute)
		if progress, err := s.step.Run(t.Context(), s.plan, part); err == nil || !strings.Contains(err.Error(), "admission webhook") {
			t.Errorf("%q, the policy is old: %+v, %v", part, progress, err)
		}
	}
	s := opening(t, awsfake.Lag{})
	s.complete()
	s.api.Forbidden, s.cloud.EKS.Entries[role("access")].Policies = true, nil
	if progress, err := s.step.Run(t.Context(), s.plan, "conflicts"); err == nil ||
		!strings.Contains(err.Error(), "send a full Rack Reconcile Requested") {
		t.Errorf("no policy: %+v, %v", progress, err)
	}
}

// IAM may not know yet of a tag that the cluster's owner has set moments ago. The call is retried, and nothing is lost.
func TestTheTagOfTheClusterCountsLater(t *testing.T) {
	late := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized to perform eks:UpdateClusterConfig"}
	s := begin(t)
	s.cloud.FailAt(2, late) // the call after DescribeCluster
	_, err := s.step.Run(t.Context(), s.plan, "")
	if !outcome.IsNotYet(err, outcome.Unready) || !strings.Contains(err.Error(), "sawhorse.dev/rack=demo") ||
		!strings.Contains(err.Error(), "eks:UpdateClusterConfig") {
		t.Fatalf("refused: %v", err)
	}
	s.cloud.Forget()
	s.opened()
	s.unchanged()
}
