package network

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

func wanted(subnets ...string) *plan.Plan {
	return &plan.Plan{
		Rack: "demo", Cluster: plan.Cluster{Name: "demo"}, Network: plan.Network{Subnets: subnets, SecurityGroups: []string{"sg-cluster"}},
	}
}

func begin() (*awsfake.Cloud, *Step) {
	cloud := awsfake.New()
	cloud.EC2.Tags["subnet-c"] = map[string]string{"Name": "c"}
	return cloud, &Step{EC2: cloud.EC2, Baselines: awsfake.NewBaselines(cloud), Written: &store.Store{DB: cloud.Table}, Now: cloud.Now}
}

func run(t *testing.T, n *Step, p *plan.Plan, want string) {
	t.Helper()
	progress, err := n.Run(t.Context(), p, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range progress.Changes {
		got = append(got, c.Action+" "+c.Subject)
	}
	if strings.Join(got, ", ") != want || progress.Wait != 0 {
		t.Errorf("changes %v, want %q", got, want)
	}
}

// tagged returns the resources with the cluster's discovery tag.
func tagged(cloud *awsfake.Cloud) string {
	var ids []string
	for _, id := range []string{"sg-cluster", "subnet-a", "subnet-b", "subnet-c"} {
		if cloud.EC2.Tags[id][ownership.TagDiscovery] == "demo" {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, " ")
}

func TestTagsOnceAndFollowsTheChoice(t *testing.T) {
	cloud, n := begin()
	t.Log("creates")
	run(t, n, wanted("subnet-a", "subnet-b"), "tagged subnet-a, tagged subnet-b, tagged sg-cluster")
	t.Log("a second run does nothing")
	cloud.Forget()
	run(t, n, wanted("subnet-a", "subnet-b"), "")
	if len(cloud.Writes()) > 0 {
		t.Errorf("writes %v", cloud.Writes())
	}
	t.Log("repairs what differs")
	delete(cloud.EC2.Tags["subnet-b"], ownership.TagDiscovery)
	run(t, n, wanted("subnet-a", "subnet-b"), "tagged subnet-b")
	t.Log("what is no longer chosen loses the tag")
	run(t, n, wanted("subnet-b", "subnet-c"), "tagged subnet-c, untagged subnet-a")
	if got := tagged(cloud); got != "sg-cluster subnet-b subnet-c" {
		t.Errorf("tagged: %s", got)
	}
	run(t, n, wanted("subnet-b", "subnet-c"), "")
	if cloud.EC2.Tags["subnet-c"]["Name"] != "c" {
		t.Error("another tag of the subnet has gone")
	}
}

// A tag that Sawhorse did not set stays, even if it names this cluster.
func TestLeavesTagsOfOthers(t *testing.T) {
	cloud, n := begin()
	cloud.EC2.Tags["subnet-a"][ownership.TagDiscovery] = "demo"
	cloud.EC2.Tags["subnet-c"][ownership.TagDiscovery] = "another"
	run(t, n, wanted("subnet-a", "subnet-b"), "tagged subnet-b, tagged sg-cluster")
	run(t, n, wanted("subnet-b"), "")
	if got := tagged(cloud); got != "sg-cluster subnet-a subnet-b" || cloud.EC2.Tags["subnet-c"][ownership.TagDiscovery] != "another" {
		t.Errorf("tagged: %s, subnet-c %v", got, cloud.EC2.Tags["subnet-c"])
	}
}

// Only one cluster can use a subnet. The problem is found before any change, and no tag is overwritten.
func TestTagOfAnotherClusterIsRejected(t *testing.T) {
	for _, id := range []string{"subnet-b", "sg-cluster"} {
		cloud, n := begin()
		cloud.EC2.Tags[id][ownership.TagDiscovery] = "another"
		_, err := n.Run(t.Context(), wanted("subnet-a", "subnet-b"), "")
		var rejected *outcome.Rejected
		if !errors.As(err, &rejected) || !strings.Contains(err.Error(), id+" carries the tag karpenter.sh/discovery=another") {
			t.Fatalf("%s: %v", id, err)
		}
		if rejected.Problems[0].Parameter != "karpenter_auth_mode" {
			t.Errorf("%s: under %s", id, rejected.Problems[0].Parameter)
		}
		if len(cloud.Writes()) > 0 {
			t.Errorf("%s: rejected input changes nothing, but %v", id, cloud.Writes())
		}
	}
}

func TestInterrupted(t *testing.T) {
	var step *Step
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		cloud, n := begin()
		step = n
		if _, err := n.Run(t.Context(), wanted("subnet-a", "subnet-b"), ""); err != nil {
			t.Fatal(err)
		}
		cloud.Pass(time.Hour)
		cloud.Forget()
		return cloud, func() (bool, error) {
			progress, err := n.Run(t.Context(), wanted("subnet-b", "subnet-c"), "")
			return progress.Wait == 0, err
		}
	}, func(cloud *awsfake.Cloud) any { // a tag that is recorded as Sawhorse's would be removed also if somebody else sets it later
		return fmt.Sprint(tagged(cloud), slices.Sorted(maps.Keys(step.Baselines.(*awsfake.Recorder).Kept)))
	})
}
