package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

func snapshot(n int64, at time.Time, value string) Snapshot {
	return Snapshot{
		Summary: Summary{Number: n, Time: at, Changed: []Changed{{Parameter: "node_disk", By: "arn:a"}}, Note: "why"},
		Values:  Values{Params: map[string]string{"node_disk": value}},
	}
}

// A call that is made again, also by a report that did not see its answer, adds nothing. One of another pass with other values does
// not take the number.
func TestASnapshotIsAddedOnce(t *testing.T) {
	s, cloud := store()
	for range 2 {
		must(t, s.AddSnapshot(t.Context(), "demo", snapshot(1, noon, "20")))
	}
	if made := strings.Join(cloud.Made(), "\n"); strings.Contains(made, "GetItem") {
		t.Errorf("the function report has no right to get a snapshot: %s", made)
	}
	if err := s.AddSnapshot(t.Context(), "demo", snapshot(1, later, "30")); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the number is taken twice: %v", err)
	}
	must(t, s.AddSnapshot(t.Context(), "demo", snapshot(2, later, "30")))
	must(t, s.AddSnapshot(t.Context(), "other", snapshot(3, later, "40")))
	all, err := History(t.Context(), s, "demo", true)
	if err != nil || len(all) != 2 || all[0].Number != 2 || all[1].Number != 1 || !all[1].Time.Equal(noon) || all[1].Note != "why" ||
		all[1].Changed[0] != (Changed{"node_disk", "arn:a"}) {
		t.Errorf("%+v, %v", all, err)
	}
	for n, want := range map[int64]string{1: "20", 2: "30", 3: ""} {
		got, err := s.Snapshot(t.Context(), "demo", n)
		if err != nil || (got == nil) != (want == "") || got != nil && got.Params["node_disk"] != want {
			t.Errorf("%d: %+v, %v", n, got, err)
		}
	}
	for name := range cloud.Table.Items {
		if !strings.HasPrefix(name, "snapshot#") {
			t.Errorf("%s is not in the partition of snapshots", name)
		}
	}
}

// A call that was stopped after the values leaves a snapshot without a summary, which the next one completes.
func TestASnapshotThatWasNotCompleted(t *testing.T) {
	s, cloud := store()
	cloud.Before = func(call string) error {
		if strings.Contains(call, "summary#") {
			return awsfake.Throttling
		}
		return nil
	}
	keepsCause(t, s.AddSnapshot(t.Context(), "demo", snapshot(1, noon, "20")), "rack demo: add the summary of snapshot 1")
	cloud.Before = nil
	last, err := s.LastSnapshot(t.Context(), "demo")
	if err != nil || last == nil || last.Number != 1 {
		t.Fatalf("%+v, %v", last, err)
	}
	must(t, s.CompleteSnapshot(t.Context(), "demo", *last))
	if all, err := History(t.Context(), s, "demo", true); err != nil || len(all) != 1 || all[0].Number != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestWhichSnapshotsAreKept(t *testing.T) {
	const days = 24 * time.Hour
	for what, c := range map[string]struct {
		count int64
		age   time.Duration // of the first; each is a minute younger than the one before
		kept  int
	}{
		"the last hundred, however old": {100, 900 * days, 100},
		"more of the last 400 days":     {300, 399 * days, 300},
		"older ones":                    {130, 500 * days, 100},
		"a thousand":                    {1015, 10 * days, 1000},
	} {
		s, _ := store()
		for n := range c.count {
			must(t, s.AddSnapshot(t.Context(), "demo", snapshot(n+1, noon.Add(time.Duration(n)*time.Minute-c.age), fmt.Sprint(n))))
			must(t, s.PruneSnapshots(t.Context(), "demo", n+1, noon))
		}
		all, err := History(t.Context(), s, "demo", true)
		if err != nil || len(all) != c.kept || all[0].Number != c.count {
			t.Errorf("%s: %d kept, %v", what, len(all), err)
		}
	}
}

// A call that was interrupted is continued with what is left, also where the last snapshot has no summary yet, or one cannot be read.
func TestForgetSnapshots(t *testing.T) {
	s, cloud := store()
	for n := range int64(40) {
		must(t, s.AddSnapshot(t.Context(), "demo", snapshot(n+1, noon, fmt.Sprint(n))))
	}
	delete(cloud.Table.Items, "snapshot#demo summary#000000000040")
	delete(cloud.Table.Items["snapshot#demo summary#000000000003"], "summary")
	var deletes atomic.Int32
	cloud.Before = func(call string) error {
		if strings.HasPrefix(call, "DynamoDB.DeleteItem") && deletes.Add(1) > 30 {
			return awsfake.Throttling
		}
		return nil
	}
	keepsCause(t, s.ForgetSnapshots(t.Context(), "demo"), "rack demo: delete ")
	left := len(cloud.Table.Items)
	if left > 49 {
		t.Fatalf("%d items are left of 79", left)
	}
	deletes.Store(-1000)
	must(t, s.ForgetSnapshots(t.Context(), "demo"))
	if again := int(deletes.Load()) + 1000; len(cloud.Table.Items) > 0 || again > left+2 {
		t.Errorf("left: %v, %d deletes for %d items", slices.Collect(maps.Keys(cloud.Table.Items)), again, left)
	}
	must(t, s.ForgetSnapshots(t.Context(), "demo"))
}

// Values that do not fit into an item are left out, and what they were is still recognized.
func TestSettingsThatAreTooLarge(t *testing.T) {
	s, _ := store()
	random := rand.New(rand.NewPCG(1, 2))
	values := Values{Params: map[string]string{"node_disk": "20"}, Objects: map[string]string{}}
	for i := range 6 {
		var text strings.Builder
		for range 100_000 {
			text.WriteByte(byte(' ' + random.IntN(95)))
		}
		values.Objects[fmt.Sprintf("s3://a/%d", i)] = text.String()
	}
	must(t, s.SaveSettings(t.Context(), Settings{Rack: "demo", Values: values}))
	got, err := s.Settings(t.Context(), "demo")
	if err != nil || got.Of != values.Digest() || got.Size <= MostValues || got.Params != nil || got.Objects != nil {
		t.Errorf("%d, %v", got.Size, err)
	}
}

func TestSettingsOfAnotherRack(t *testing.T) {
	s, cloud := store()
	must(t, s.SaveSettings(t.Context(), Settings{Rack: "demo", Values: Values{Params: map[string]string{}}}))
	cloud.Table.Items["plan#prod settings"] = cloud.Table.Items["plan#demo settings"]
	if _, err := s.Settings(t.Context(), "prod"); err == nil || !strings.Contains(err.Error(), `the settings of rack "demo"`) {
		t.Errorf("%v", err)
	}
}

func TestWhatDiffersBetweenValues(t *testing.T) {
	a := Values{Params: map[string]string{"same": "1", "gone": "1", "other": "1", "moved": "s3://b/1", "rewritten": "s3://b/2"},
		Objects: map[string]string{"s3://b/1": "{}", "s3://b/2": "{}"}}
	b := Values{Params: map[string]string{"same": "1", "new": "1", "other": "2", "moved": "s3://b/3", "rewritten": "s3://b/2"},
		Objects: map[string]string{"s3://b/3": "{}", "s3://b/2": "[]"}}
	if got := a.Differ(b); !slices.Equal(got, []string{"gone", "moved", "new", "other", "rewritten"}) {
		t.Errorf("%v", got)
	}
	if a.Digest() == b.Digest() || b.Text("moved") != "{}" || b.Text("other") != "2" {
		t.Errorf("%s, %s, %s", a.Digest(), b.Digest(), b.Text("moved"))
	}
}

// The summary of a change of a hundred pools is small, so that a list of a thousand is read in some pages.
func TestASummaryIsSmall(t *testing.T) {
	var summary Summary
	for i := range 100 {
		summary.Pools = append(summary.Pools, plan.Effect{
			Pool: fmt.Sprint("pool-", i), Change: events.PoolChanged, Replaces: true, Reasons: []string{"NodePoolDrifted"}, Nodes: new(i),
			Replaced: new(i),
		})
	}
	s, cloud := store()
	must(t, s.CompleteSnapshot(t.Context(), "demo", Snapshot{Summary: summary}))
	size := len(attribute(t, cloud, "snapshot#demo summary#000000000000", "pools"))
	if size > 2000 {
		t.Errorf("%d bytes", size)
	}
}

// hundredPools returns a snapshot of a rack with a hundred pools that all change, each with fields of its own.
func hundredPools(n int64) Snapshot {
	var entries []string
	made := Snapshot{Summary: Summary{
		Number: n, Time: noon.Add(time.Duration(n) * time.Hour), Generation: 3 * n, Karpenter: "1.10.0", Note: "release " + fmt.Sprint(n),
		Changed: []Changed{{"additional_karpenter_nodepools_config", "arn:aws:sts::123456789012:assumed-role/operators/jo"}},
	}}
	for i := range int64(100) {
		pool := fmt.Sprintf("team-%d", i)
		entries = append(entries, fmt.Sprintf(`{"name":%q,"instance_families":"c%di,m6i,r%da","capacity_types":"on-demand,spot","cpu_limit":%d,`+
			`"memory_limit_gb":%d,"disk":%d,"labels":"team=%s,cost=c%d","taints":"team=%s:NoSchedule","dedicated":true,"node_expiry":"%dh"}`,
			pool, 5+i%3, 5+i%2, 100+n+i, 400+7*i, 20+i, pool, 1000+13*i, pool, 100+n%50+i))
		made.Summary.Pools = append(made.Summary.Pools, plan.Effect{
			Pool: pool, Change: events.PoolChanged, Replaces: true, Reasons: []string{"NodePoolDrifted"},
			Nodes: new(int(i % 30)), Replaced: new(int(i % 30)),
		})
	}
	made.Params = map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "cluster_name": "prod", "tags": "team=core"}
	made.Objects = map[string]string{}
	made.Params["additional_karpenter_nodepools_config"] = fmt.Sprintf("s3://config/prod/%d.json", n)
	made.Objects[made.Params["additional_karpenter_nodepools_config"]] = "[" + strings.Join(entries, ",") + "]"
	return made
}

// docs/cost.md has these sizes: of a rack with a hundred pools, whose 1,000 snapshots each change all of them.
func TestTheSizeOfAThousandSnapshots(t *testing.T) {
	s, cloud := store()
	text, values, summaries := 0, 0, 0
	const some = 20 // of the thousand
	for n := range int64(some) {
		made := hundredPools(50*n + 1)
		must(t, s.AddSnapshot(t.Context(), "demo", made))
		for _, object := range made.Objects {
			text += len(object)
		}
	}
	for place, item := range cloud.Table.Items {
		size := 0
		for name, value := range item {
			size += len(name) + len(awsfake.Text(item, name))
			if b, is := value.(*types.AttributeValueMemberB); is {
				size += len(b.Value)
			}
		}
		if strings.Contains(place, " summary#") {
			summaries += size
		} else {
			values += size
		}
	}
	text, values, summaries = text/some, values/some, summaries/some
	t.Logf("JSON of %d bytes: an item of values of %d bytes, one of the summary of %d; a thousand are %.1f MB, a list of them reads %.1f MB",
		text, values, summaries, float64(values+summaries)/1000, float64(summaries)/1000)
	if text < 20_000 || values > 5000 || summaries > 2000 {
		t.Error("docs/cost.md says otherwise")
	}
}

// listed answers queries as DynamoDB does, in pages of 1 MB.
type listed struct {
	Table
	items []item
}

func (l listed) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	from := 0
	if start, is := in.ExclusiveStartKey["sk"].(*types.AttributeValueMemberN); is {
		from, _ = strconv.Atoi(start.Value)
	}
	const page = 500 // of 2 KB each
	to := min(from+page, len(l.items))
	out := &dynamodb.QueryOutput{Items: l.items[from:to]}
	if to < len(l.items) {
		out.LastEvaluatedKey = item{"sk": &types.AttributeValueMemberN{Value: strconv.Itoa(to)}}
	}
	return out, nil
}

// A list of a thousand snapshots of a hundred pools takes less than a second.
func BenchmarkHistory(b *testing.B) {
	made, cloud := store()
	for n := range int64(1000) {
		if err := made.CompleteSnapshot(b.Context(), "demo", hundredPools(n+1)); err != nil {
			b.Fatal(err)
		}
	}
	var l listed
	for _, place := range slices.Sorted(maps.Keys(cloud.Table.Items)) {
		l.items = append(l.items, cloud.Table.Items[place])
	}
	for what, pools := range map[string]bool{"text": false, "json": true} {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				if all, err := History(b.Context(), &Store{DB: l}, "demo", pools); err != nil || len(all) != 1000 {
					b.Fatal(len(all), err)
				}
			}
		})
	}
}
