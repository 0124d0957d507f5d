package story

import (
	"fmt"
	"time"
)

// WrongNames makes typos in the names of the cluster and of a node group. Each is reported for what it is, without
// consequential errors: the rack's own cluster does not count as deleted, and Karpenter keeps running.
func WrongNames(t *Teller) {
	const (
		all   = status + ` | python3 -c 'import json,sys; print(*[p["parameter"] for p in json.load(sys.stdin).get("problems", [])])'`
		gone  = status + " | grep -c 'any more\\|has been deleted\\|forgotten' || true"
		count = leaseOf + "Item.served.N"
		pools = "kubectl get nodepools,ec2nodeclasses -o jsonpath='{.items[*].metadata.uid} {.items[*].metadata.generation}'"
	)
	untouched := t.Ask(pools)
	wrong := func(name, value, said string) {
		t.Type(fmt.Sprintf("%s%s --type String --value %s", put, name, value))
		t.Until("the problems", all, name, time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
		t.Contains("the sentence", status, said)
		t.Check("status", state, "Rejected")
	}
	t.Chapter("A typo in cluster_name")
	wrong("cluster_name", "demmo", "has been migrated; write demo")
	t.Check("a cluster that is gone", gone, "0")
	before := t.Ask(count) // not the status, which repeats the previous result
	t.Type(turnOff)
	t.Until("a pass has seen that", fmt.Sprintf(`[ "$(%s)" = %s ] || echo yes`, count, before), "yes", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("the problems", all, "cluster_name")
	t.Check("a cluster that is gone", gone, "0")
	t.Type(turnOn)
	t.Type(put + "cluster_name --value unset")
	t.Until("status", state, "Reconciled", time.Minute)

	t.Chapter("A typo in system_node_groups")
	wrong("system_node_groups", "sytem", "which cluster demo does not have")
	t.Type(put + "system_node_groups --value unset")
	t.Until("status", state, "Reconciled", time.Minute)
	t.Check("NodePools and EC2NodeClasses", pools, untouched)
}
