package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

var (
	pool = k8stest.Object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
		"metadata": map[string]any{"name": "workload", "labels": map[string]any{ownership.TagRack: "demo"}},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"requirements": []any{map[string]any{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64"}}},
			"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "workload"}}}}}
	// spare is a pool that is never Ready.
	spare = k8stest.Object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
		"metadata": map[string]any{"name": "spare", "labels": map[string]any{ownership.TagRack: "demo"}}, "spec": pool["spec"]}
	lease = k8stest.Object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"name": leaderLease, "namespace": ownership.Namespace}}
)

// inCluster plays the Deployment's controller and Karpenter.
type inCluster struct {
	*scene
	// version is the version whose pods run and lead.
	version string
	// stuck has versions whose pods do not start, and blind those under which the pool is not Ready.
	stuck, blind map[string]bool
}

// changing returns a rack whose controller of 1.10.0 works, with a pool that is Ready and one that is not.
func changing(t *testing.T) *inCluster {
	s := begin(t)
	s.clock = time.Now().UTC()
	s.Create(node("one", "us-east-1a"))
	s.defined()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	for _, object := range []k8stest.Object{class, pool, spare} {
		s.Create(object)
	}
	c := &inCluster{scene: s, stuck: map[string]bool{}, blind: map[string]bool{}}
	s.Create(k8stest.Object{"apiVersion": lease["apiVersion"], "kind": "Lease", "metadata": lease["metadata"],
		"spec": map[string]any{"holderIdentity": "host_uuid"}})
	c.play()
	if progress := s.run(PartRelease); progress.Wait != 0 || progress.Outputs["karpenter_version"] != "1.10.0" {
		t.Fatalf("%+v", progress)
	}
	return c
}

// play lets the cluster's controllers do what they do in some seconds, or in a minute in which a version does not work.
func (c *inCluster) play() {
	c.Helper()
	c.clock = c.clock.Add(20 * time.Second)
	live := c.Get(deployment)
	if live == nil {
		return
	}
	wanted, _, _ := strings.Cut(c.container().Image[strings.LastIndex(c.container().Image, "controller:")+len("controller:"):], "@")
	if c.stuck[wanted] || c.blind[c.version] {
		c.clock = c.clock.Add(40 * time.Second)
	}
	now := c.clock.Format("2006-01-02T15:04:05.000000Z")
	if c.version != wanted && !c.stuck[wanted] {
		c.version = wanted
		c.Change(lease, func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, now, "spec", "acquireTime")
		})
	}
	if c.version == wanted {
		c.RolledOut(deployment)
	} else {
		c.Status(deployment, k8stest.Object{"observedGeneration": live.GetGeneration(), "replicas": 2, "updatedReplicas": 1,
			"readyReplicas": 1, "availableReplicas": 1, "unavailableReplicas": 1})
	}
	c.Change(lease, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, now, "spec", "renewTime")
	})
	release, err := karpenter.Find(c.version)
	if err != nil {
		c.Fatal(err)
	}
	c.Change(class, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{hashVersion: release.EC2NodeClass.Version})
	})
	c.ready(class, !c.blind[c.version])
	c.ready(pool, !c.blind[c.version])
	c.ready(spare, false)
}

func (c *inCluster) ready(object k8stest.Object, ready bool) {
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
		"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": c.Get(object).GetGeneration()}
	if !ready {
		condition["status"], condition["reason"], condition["message"] = "False", "ValidationFailed", "not authorized"
	}
	c.Status(object, map[string]any{"conditions": []any{condition}})
}

// to makes the plan that goes from a version in force to another. They are the same if the other one is empty.
func (c *inCluster) to(version, inForce string, write int64) {
	c.Helper()
	c.plan.Generation++
	c.plan.Controller.Write, c.plan.Controller.Previous = write, nil
	if version == "" {
		version = inForce
	} else {
		previous := c.releaseOf(inForce)
		c.plan.Controller.Previous = &previous
	}
	c.plan.Controller.Release = c.releaseOf(version)
	render(c.plan)
}

// releaseOf returns the plan's release for another version, without objects.
func (c *inCluster) releaseOf(version string) plan.Release {
	c.Helper()
	found, err := karpenter.Find(version)
	if err != nil {
		c.Fatal(err)
	}
	var release plan.Release
	text, err := json.Marshal(c.plan.Controller.Release)
	if err == nil {
		err = json.Unmarshal(text, &release)
	}
	if err != nil {
		c.Fatal(err)
	}
	release.Version, release.Objects = version, nil
	image := map[string]any{"tag": version}
	if found.Digest != "" {
		image["digest"] = found.Digest
	}
	release.Values["controller"].(map[string]any)["image"] = image
	return release
}

// finish calls the step until it does not wait any more, and returns all its changes, its last progress and its error.
func (c *inCluster) finish() (changes []string, last outcome.Progress, err error) {
	c.Helper()
	for range 60 {
		last, err = c.step.Run(ctx, c.plan, PartRelease)
		for _, change := range last.Changes {
			changes = append(changes, change.Action+" "+change.Subject)
		}
		if err != nil || last.Wait == 0 {
			return changes, last, err
		}
		c.play()
	}
	c.Fatalf("no end: %+v", last)
	return nil, last, nil
}

// changes finishes a change that works.
func (c *inCluster) changes(version, before, change string) {
	c.Helper()
	changes, last, err := c.finish()
	if err != nil || fmt.Sprint(changes) != fmt.Sprint([]string{change}) {
		c.Fatalf("changes %q, %v", changes, err)
	}
	if last.Outputs["karpenter_version"] != version || last.Outputs["karpenter_version_before"] != before || last.Unfinished {
		c.Errorf("%+v", last)
	}
	if record := c.record(); record.Version != version || record.Before != before || record.RolledBack != nil {
		c.Errorf("%+v", record)
	}
	c.over(version)
}

// fails finishes a change that does not work, and compares the reason.
func (c *inCluster) fails(version, inForce string, write int64, reason string) {
	c.Helper()
	_, last, err := c.finish()
	if err == nil || !strings.Contains(err.Error(), "Karpenter "+version+" failed, "+outcome.TookBack+" "+inForce+", which works again: ") ||
		!strings.Contains(err.Error(), reason) {
		c.Fatalf("%+v, %v; want the reason %s", last, err, reason)
	}
	record := c.record()
	if record.RolledBack == nil || record.Version != inForce {
		c.Fatalf("%+v", record)
	}
	if r := record.RolledBack; r.Version != version || r.Write != write || !strings.Contains(r.Reason, reason) {
		c.Errorf("%+v", r)
	}
	if got := c.installed(); got != inForce || c.version != inForce {
		c.Errorf("%s is installed and %s runs, not %s", got, c.version, inForce)
	}
	t, before := c.scene, c.scene.versions()
	_, last, again := c.finish()
	if again == nil || again.Error() != err.Error() || len(last.Changes) > 0 || t.versions() != before {
		c.Errorf("a repeated call: %+v, %v", last, again)
	}
}

// over checks that a change has left nothing behind.
func (c *inCluster) over(version string) {
	c.Helper()
	if _, left := c.checkpoints.Kept[attemptKey]; left || c.installed() != version {
		c.Errorf("%s is installed; checkpoints %v", c.installed(), c.checkpoints.Kept)
	}
}

func (s *scene) record() plan.KarpenterRecord {
	s.Helper()
	records, err := s.store.Records(ctx, "demo")
	if err != nil {
		s.Fatal(err)
	}
	return records.Karpenter
}

// installed returns the version of the Deployment.
func (s *scene) installed() string {
	s.Helper()
	return s.Get(deployment).GetLabels()[labelVersion]
}
