package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

type object = k8stest.Object

const statusParameter = "/sawhorse/racks/demo/status"

// scene is a rack whose pass has just ended, and a cluster in which tests write what Karpenter would write.
type scene struct {
	*testing.T
	*k8stest.Cluster
	cloud    *awsfake.Cloud
	rollout  *Rollout
	measured *bytes.Buffer
	clock    time.Time
	// requested are the passes that were requested.
	requested []events.ReconcileRequested
}

// start is when the pass ended.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func begin(t *testing.T, pools ...string) *scene {
	s := &scene{T: t, Cluster: k8stest.New(t), cloud: awsfake.New(), measured: new(bytes.Buffer), clock: start}
	s.InstallCRDs()
	t.Cleanup(func() {
		for _, group := range [][3]string{
			{"karpenter.sh", "v1", "nodeclaims"}, {"karpenter.sh", "v1", "nodepools"}, {"karpenter.k8s.aws", "v1", "ec2nodeclasses"},
		} {
			for _, left := range s.List(group[0], group[1], group[2]) {
				s.Remove(left.Object)
			}
		}
	})
	now := func() time.Time { return s.clock }
	s.rollout = &Rollout{
		Store: &store.Store{DB: s.cloud.Table, Name: "sawhorse"}, Now: now, Log: slog.New(slog.DiscardHandler),
		Outputs: store.Published{SSM: s.cloud.SSM, Paths: ownership.Paths{Prefix: "/sawhorse"}},
		Dial:    s.Connector("rollout"), Metrics: metrics.Writer{Out: s.measured, Namespace: "Sawhorse", Now: now},
		Send: func(_ context.Context, detail events.Outbound) error {
			text, err := json.Marshal(detail)
			s.must(err)
			return s.put(detail.DetailType(), string(text))
		},
		Request: func(_ context.Context, request events.ReconcileRequested) error {
			s.requested = append(s.requested, request)
			return nil
		},
	}
	s.passEnded(outcome.StateReconciled, pools...)
	for _, name := range pools {
		s.Create(class(name))
		s.Create(nodePool(name))
		s.ready(name, start)
	}
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// passEnded writes what the report of generation 7 writes.
func (s *scene) passEnded(state outcome.State, pools ...string) {
	s.Helper()
	record := store.Rollout{
		Rack: "demo", Cluster: plan.Cluster{Name: "demo"}, Names: pools, Generation: 7, Execution: "arn:x",
		Started: start.Add(-20 * time.Second), Applied: start,
	}
	status := store.Status{Rack: "demo", State: state, Generation: 7, Execution: "arn:x"}
	s.must(s.rollout.Store.SaveRollout(s.Context(), record))
	text, err := status.With(&record).Text()
	s.must(err)
	s.must(s.rollout.Outputs.WriteStatus(s.Context(), "demo", text))
	s.must(s.rollout.Store.SaveStatus(s.Context(), status, "digest", store.Reported{}.Wrote(status, text)))
	s.cloud.Forget()
}

func meta(name string, annotations object) object {
	return object{"name": name, "labels": object{ownership.TagRack: "demo"}, "annotations": annotations}
}

func class(name string) object {
	term := []any{object{"tags": object{ownership.TagDiscovery: "demo"}}}
	return object{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
		"metadata": meta(name, object{"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"}),
		"spec": object{"role": "demo-karpenter-nodes", "amiSelectorTerms": []any{object{"alias": "al2023@latest"}},
			"subnetSelectorTerms": term, "securityGroupSelectorTerms": term}}
}

func spec(name string) object {
	return object{"requirements": []any{object{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64"}}},
		"nodeClassRef": object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}}
}

func nodePool(name string) object {
	return object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": object{"template": object{"spec": spec(name)}},
		"metadata": meta(name, object{"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v3"})}
}

// claim is a NodeClaim that was launched while the hashes of its pool were these.
func claim(name, pool, poolHash, classHash string) object {
	return object{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": spec(pool), "metadata": object{
		"name": name, "labels": object{ownership.LabelPool: pool, "node.kubernetes.io/instance-type": "m5.large"},
		"annotations": object{
			"karpenter.sh/nodepool-hash": poolHash, "karpenter.sh/nodepool-hash-version": "v3",
			"karpenter.k8s.aws/ec2nodeclass-hash": classHash, "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4",
		}}}
}

func condition(kind, status, reason string, since time.Time) object {
	return object{
		"type": kind, "status": status, "reason": reason, "message": reason + " it is", "lastTransitionTime": since.Format(time.RFC3339),
	}
}

// ready makes a pool Ready as Karpenter does.
func (s *scene) ready(pool string, since time.Time) {
	s.Helper()
	for _, o := range []object{class(pool), nodePool(pool)} {
		s.Status(o, object{"conditions": []any{condition("Ready", "True", "Ready", since)}})
	}
}

// runs adds a node to a pool.
func (s *scene) runs(o object, more ...any) {
	s.Helper()
	s.Create(o)
	s.Status(o, object{"conditions": append([]any{
		condition("Launched", "True", "Launched", start), condition("Registered", "True", "Registered", start)}, more...)})
}

// joins adds a node to a pool with its Node, which is Ready or not.
func (s *scene) joins(o object, ready bool, conditions ...any) {
	s.Helper()
	name := o["metadata"].(object)["name"].(string)
	node := object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "node-" + name, "labels": o["metadata"].(object)["labels"]}}
	s.Create(node)
	s.T.Cleanup(func() { s.Remove(node) })
	status := "Unknown" // as the node controller sets it when kubelet is not heard of
	if ready {
		status = "True"
	}
	s.Status(node, object{"conditions": []any{condition("Ready", status, "Kubelet", start)}})
	s.Create(o)
	s.Status(o, object{"nodeName": "node-" + name, "conditions": append([]any{
		condition("Launched", "True", "Launched", start), condition("Registered", "True", "Registered", start)}, conditions...)})
}

// launched adds a NodeClaim to a pool that has not become a node.
func (s *scene) launched(o object, at time.Time) {
	s.Helper()
	s.Create(o)
	s.Status(o, object{"conditions": []any{
		condition("Launched", "True", "Launched", at), condition("Registered", "Unknown", "NodeNotFound", at)}})
}

// after looks at the rack at a time after the end of the pass, and returns the status.
func (s *scene) after(d time.Duration) store.Status {
	s.Helper()
	s.clock = start.Add(d)
	_, err := s.rollout.Run(s.Context(), Event{})
	s.must(err)
	return s.status()
}

func (s *scene) status() (status store.Status) {
	s.Helper()
	text := s.cloud.SSM.Values[statusParameter]
	s.must(json.Unmarshal([]byte(text), &status))
	reported, err := s.rollout.Store.Reported(s.Context(), "demo")
	s.must(err)
	if !reported.Published(text) {
		s.Errorf("an audit would take the status for somebody else's: %s", text)
	}
	return status
}

// pool returns what the status says of a pool.
func (s *scene) pool(status store.Status, name string) store.Pool {
	s.Helper()
	i := slices.IndexFunc(status.Pools, func(p store.Pool) bool { return p.Pool == name })
	if i < 0 {
		s.Fatalf("no pool %s in %+v", name, status.Pools)
	}
	return status.Pools[i]
}

// shows checks the state in a status, and its pools in order.
func (s *scene) shows(status store.Status, state outcome.State, pools ...store.Pool) {
	s.Helper()
	if status.State != state || !slices.Equal(status.Pools, pools) {
		s.Errorf("%s %+v, want %s %+v", status.State, status.Pools, state, pools)
	}
}

func (s *scene) put(kind, detail string) error {
	_, err := s.cloud.Events.PutEvents(s.Context(), entry(kind, detail))
	return err
}

// sent returns the events of rollouts that have ended.
func (s *scene) sent() (all []events.RolledOut) {
	s.Helper()
	for _, e := range s.cloud.Events.Sent {
		if *e.DetailType != events.TypeRolledOut {
			continue
		}
		var detail events.RolledOut
		s.must(json.Unmarshal([]byte(*e.Detail), &detail))
		all = append(all, detail)
	}
	return all
}

// named is an object that is known by its kind and name alone.
func named(kind, name string) object { return object{"kind": kind, "metadata": object{"name": name}} }

func stamp(d time.Duration) string { return start.Add(d).Format(time.RFC3339) }

// measures checks how often a text was in the metrics so far.
func (s *scene) measures(text string, times int) {
	s.Helper()
	if got := strings.Count(s.measured.String(), text); got != times {
		s.Errorf("%d times %s in %s", got, text, s.measured)
	}
}

func (s *scene) written() []string { return s.cloud.Writes() }

func annotate(name, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		all := o.GetAnnotations()
		all[name] = value
		o.SetAnnotations(all)
	}
}

func entry(kind, detail string) *eventbridge.PutEventsInput {
	return &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{DetailType: &kind, Detail: &detail}}}
}
