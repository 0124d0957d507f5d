package nodes

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

var newRelease = flag.Bool("release", false, "record the hashes of the pools of this release")

// Karpenter replaces the nodes of a pool whose hash changes. The pools of the golden plans have the hashes that they had in the
// last release, so that an upgrade of Sawhorse alone replaces no node. A release that has to change one records it with
// make released, and says in its notes which nodes it replaces.
func TestAnUpgradeOfSawhorseReplacesNoNode(t *testing.T) {
	const file = "testdata/released.json"
	files, err := filepath.Glob("../testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	now := map[string]string{} // plan/pool -> hash of the NodePool, hash of the EC2NodeClass
	for _, golden := range files {
		var outcome struct{ Plan plan.Plan }
		text, err := os.ReadFile(golden)
		if err == nil {
			err = json.Unmarshal(text, &outcome)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := outcome.Plan
		for pool, m := range byPool(p.NodePools.Objects) {
			d := m.decode(p, []*api{apiOf(p.Controller.Release.Version)})
			if !d.good {
				t.Errorf("%s: pool %s cannot be read", golden, pool)
			}
			now[strings.TrimSuffix(filepath.Base(golden), ".json")+"/"+pool] = d.poolHash + " " + d.classHash
		}
	}
	if *newRelease {
		text, err := json.MarshalIndent(now, "", "  ")
		if err == nil {
			err = os.WriteFile(file, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var last map[string]string
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	if err != nil || len(last) == 0 {
		t.Fatalf("%s: %d pools, %v", file, len(last), err)
	}
	for pool, hash := range last {
		if now[pool] != hash {
			t.Errorf("%s: hashes %q, in the last release %q: its nodes would be replaced", pool, now[pool], hash)
		}
	}
}
