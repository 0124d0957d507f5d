package validation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// The largest plan fits into an item of the table, which has 400 KB: 100 pools, with texts that do not compress, up to
// the limit of a JSON parameter, and as many of the plan before.
func TestTheLargestPlanFits(t *testing.T) {
	const limit = 64 << 10
	var pools []string
	size := 2
	for n := range 100 {
		pool := fmt.Sprintf(`{"name":"pool-%d","labels":"%s"}`, n, strings.Join(labels(n), ","))
		if size += len(pool) + 1; size > limit {
			t.Fatalf("%d pools have %d bytes", n, size)
		}
		pools = append(pools, pool)
	}
	if size < limit*9/10 {
		t.Fatalf("%d bytes are far from the limit", size)
	}
	texts := small(0)
	texts["additional_karpenter_nodepools_config"] = "[" + strings.Join(pools, ",") + "]"
	v := Validate(Input{Parsed: params.Parse(params.Input{Rack: "demo", Params: texts}), Facts: offline})
	if len(v.Problems) > 0 {
		t.Fatal(v.Problems)
	}
	last := v.Plan
	v.Plan.Last = &last
	plain, err := json.Marshal(v.Plan)
	if err != nil {
		t.Fatal(err)
	}
	store := &store.Store{DB: awsfake.New().Table, Name: "sawhorse"} // it refuses a larger item, as DynamoDB does
	if err := store.SavePlan(t.Context(), &v.Plan); err != nil {
		t.Fatal(err)
	}
	read, err := store.Plan(t.Context(), "demo")
	if err != nil || len(read.NodePools.Objects) != 202 {
		t.Errorf("%v", err)
	}
	t.Logf("%d bytes of JSON", len(plain))
}

// labels returns labels of some 600 characters in all.
func labels(pool int) (all []string) {
	for n := range 16 {
		sum := fnv.New128a()
		fmt.Fprint(sum, pool, n)
		all = append(all, fmt.Sprintf("l%d=%x", n, sum.Sum(nil)))
	}
	return all
}
