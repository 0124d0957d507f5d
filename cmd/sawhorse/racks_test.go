package main

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

func TestRacks(t *testing.T) {
	t.Parallel()
	grown := store.Status{
		Rack: "core", State: outcome.StateReconciled, Generation: 12, Time: "2026-11-21T07:00:00Z", Karpenter: "1.10.0",
		Rollout: &store.Progress{}, Pools: store.Pools{{Pool: "gpu", Nodes: 2}, {Pool: "workload", Nodes: 12, Outdated: 3}},
	}
	many := grown
	many.Omitted, many.Pools = 40, many.Pools[:1]
	env := environment(t, holding(map[string]string{
		"/sawhorse/racks/core/status": statusText(t, grown), "/sawhorse/racks/core/params/karpenter_enabled": "true",
		"/sawhorse/racks/many/status": statusText(t, many), statusName: statusText(t, rejected),
		"/sawhorse/racks/new/params/karpenter_enabled": "unset", "/sawhorse/racks/Wrong/params/karpenter_enabled": "unset",
	}))
	if got, want := inCloud(t, env, "racks").ends(t, 0).stdout, `RACK  STATE          GENERATION  TIME                  KARPENTER  NODES
core  Reconciled     12          2026-11-21T07:00:00Z  1.10.0     14, 3 outdated
many  Reconciled     12          2026-11-21T07:00:00Z  1.10.0     at least 2
new   no status yet  -           -                     -          -
prod  Rejected       8           2026-11-21T03:55:54Z  off        0
`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	all := decoded[[]standing](t, inCloud(t, env, "racks", "-o", "json").ends(t, 0).stdout)
	if len(all) != 4 || all[0].Status.Pools[1].Outdated != 3 || all[2].Status != nil {
		t.Errorf("%+v", all)
	}
}

func TestRacksThatCannotBeRead(t *testing.T) {
	t.Parallel()
	env := environment(t, holding(map[string]string{statusName: statusText(t, rejected), "/sawhorse/racks/core/status": "x"}))
	got := inCloud(t, env, "racks")
	if want := "sawhorse: rack core: parameter /sawhorse/racks/core/status: decode: invalid character 'x' looking for beginning of value\n" +
		"sawhorse: the status of 1 of 2 racks could not be read\n"; got.code != 3 || got.stderr != want ||
		!strings.Contains(got.stdout, "\ncore  unknown ") {
		t.Errorf("%+v", got)
	}
	none := inCloud(t, environment(t, holding(nil)), "racks")
	if want := "sawhorse: there is no rack below /sawhorse/racks in eu-central-1; `sawhorse register RACK` creates one\n"; none.code != 0 ||
		none.stdout != "" || none.stderr != want {
		t.Errorf("%+v", none)
	}
	if denied := inCloud(t, denying(t), "racks"); denied.code != 3 ||
		!strings.Contains(denied.stderr, "parameters below /sawhorse/racks: list: ") {
		t.Errorf("%+v", denied)
	}
}
