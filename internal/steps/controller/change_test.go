package controller

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// A newer version is in force when its pods are Ready and every pool that was Ready is so again. An older one after that
// too. CRDs stay at the newest version.
func TestAnotherVersion(t *testing.T) {
	c := changing(t)
	t.Log("the CRDs come first")
	t.Cleanup(c.undefined) // other tests' are older
	c.plan.Controller.CRDs.Version, c.plan.Controller.CRDs.Chart = "1.12.1", digest(t, "1.12.1", ownership.ReleaseCRD)
	c.run(PartCRDs, "upgraded from 1.10.0 release karpenter-crd 1.12.1")
	c.settle()
	if record := c.record(); record.CRDs != "1.12.1" || record.Version != "1.10.0" || record.Before != "" {
		t.Errorf("%+v", record)
	}

	t.Log("up")
	c.to("1.12.1", "1.10.0", 3)
	progress := c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	if progress.Wait == 0 || len(progress.Outputs) > 0 || c.record().Version != "1.10.0" {
		t.Errorf("%+v, %+v", progress, c.record())
	}
	c.changes("1.12.1", "1.10.0", "")
	if got, want := c.container().Image, "public.ecr.aws/karpenter/controller:1.12.1@"; !strings.HasPrefix(got, want) {
		t.Errorf("image %s", got)
	}
	t.Log("done again, it changes nothing")
	before, record := c.versions(), c.record()
	c.changes("1.12.1", "1.10.0", "")
	if c.versions() != before || c.record() != record {
		t.Errorf("%+v; %s, before %s", c.record(), c.versions(), before)
	}

	t.Log("down")
	c.to("1.10.0", "1.12.1", 4)
	c.changes("1.10.0", "1.12.1", "downgraded from 1.12.1 release karpenter 1.10.0")
	c.plan.Controller.CRDs.Version, c.plan.Controller.CRDs.Chart = "1.10.0", digest(t, "1.10.0", ownership.ReleaseCRD)
	was := c.versions()
	if progress := c.run(PartCRDs); !progress.Unfinished || c.versions() != was || c.record().CRDs != "1.12.1" {
		t.Errorf("the CRDs went back: %+v, %+v", progress, c.record())
	}

	t.Log("off: of the record, only the CRDs stay")
	c.to("", "1.10.0", 4)
	c.plan.Controller.Release.Present = false
	c.Remove(class)
	progress = c.run(PartRelease, "uninstalled release karpenter")
	if record := c.record(); record != (plan.KarpenterRecord{CRDs: "1.12.1"}) ||
		progress.Outputs["karpenter_version"]+progress.Outputs["karpenter_version_before"] != "" {
		t.Errorf("%+v, outputs %v", record, progress.Outputs)
	}
}

func digest(t *testing.T, version, release string) string {
	t.Helper()
	found, err := karpenter.Find(version)
	if err != nil {
		t.Fatal(err)
	}
	return found.ChartDigests[release]
}

// brokenPod returns a pod of the controller whose container waits for a reason.
func brokenPod(reason string, restarts int) k8stest.Object {
	broken := pod("broken", ownership.WebTokenVariable)
	broken["status"] = map[string]any{"phase": "Pending", "containerStatuses": []any{map[string]any{
		"name": "controller", "image": "i", "imageID": "", "ready": false, "restartCount": restarts,
		"state":     map[string]any{"waiting": map[string]any{"reason": reason, "message": "it will not start"}},
		"lastState": map[string]any{"terminated": map[string]any{"exitCode": 1, "reason": "Error", "message": "panic"}},
	}}}
	return broken
}

// A version that does not work goes away by itself, and is tried again only if a plan asks for it anew.
func TestAVersionThatDoesNotWork(t *testing.T) {
	c := changing(t)
	c.plan.Infrastructure.PodIdentity = false

	t.Log("an image that cannot be pulled: after two minutes, when the registry's rate cannot be the cause any more")
	c.to("1.12.1", "1.10.0", 1)
	c.stuck["1.12.1"] = true
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	began := c.clock
	c.Create(brokenPod("ImagePullBackOff", 0))
	c.fails("1.12.1", "1.10.0", 1, "pod broken: ImagePullBackOff: it will not start")
	if took := c.clock.Sub(began); took < 2*time.Minute || took > 4*time.Minute {
		t.Errorf("after %s", took)
	}
	c.Remove(pod("broken", ""))

	t.Log("the next plan is for the version in force: it only forgets the attempt")
	c.to("", "1.10.0", 1)
	record := c.record()
	changes, _, err := c.finish()
	if err != nil || len(changes) > 0 || c.record() == (plan.KarpenterRecord{}) || c.record().RolledBack == nil ||
		*c.record().RolledBack != *record.RolledBack {
		t.Errorf("%v, %v, %+v", changes, err, c.record())
	}
	c.over("1.10.0")

	t.Log("written again, it is tried again: a container that keeps ending")
	c.clock = time.Now().UTC() // that of the API server, which sets the age of pods
	c.to("1.12.1", "1.10.0", 2)
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	if c.record().RolledBack != nil {
		t.Errorf("%+v", c.record())
	}
	c.Create(brokenPod("CrashLoopBackOff", 4))
	c.fails("1.12.1", "1.10.0", 2, "CrashLoopBackOff: it will not start (it last ended with Error, exit code 1: panic)")
	c.Remove(pod("broken", ""))

	t.Log("by force, with the same write: pods that give no reason, for ten minutes")
	c.to("1.12.1", "1.10.0", 2)
	began = c.clock
	c.fails("1.12.1", "1.10.0", 2, "Deployment/kube-system/karpenter: 1 old pods still there")
	if took := c.clock.Sub(began); took < changeTime || took > changeTime+backTime {
		t.Errorf("after %s", took)
	}

	t.Log("a pool that was Ready is not; the one that was not does not count")
	c.to("1.14.3", "1.10.0", 3)
	c.blind["1.14.3"] = true
	c.fails("1.14.3", "1.10.0", 3, "NodePool/workload was Ready before: Ready=False ValidationFailed not authorized")

	t.Log("it works now")
	clear(c.blind)
	c.to("1.14.3", "1.10.0", 4)
	c.changes("1.14.3", "1.10.0", "upgraded from 1.10.0 release karpenter 1.14.3")
}

// The version before does not work any more either. The pass says so within the step's deadline.
func TestNeitherVersionWorks(t *testing.T) {
	c := changing(t)
	c.to("1.12.1", "1.10.0", 1)
	c.stuck["1.12.1"] = true
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	began := c.clock
	c.play()
	c.version, c.stuck["1.10.0"] = "1.12.1", true
	c.stuck["1.12.1"], c.blind["1.12.1"] = false, true
	_, _, err := c.finish()
	const neither = "1.10.0, which does not work either (Deployment/kube-system/karpenter: 1 old pods still there)"
	if err == nil || !strings.Contains(err.Error(), neither) {
		t.Errorf("%v", err)
	}
	if took := c.clock.Sub(began); took > 15*time.Minute {
		t.Errorf("it took %s, and the step has 15 minutes", took)
	}
	t.Log("the next plan repairs the version in force")
	clear(c.stuck)
	c.to("", "1.10.0", 1)
	if changes, _, err := c.finish(); err != nil || len(changes) > 0 {
		t.Errorf("%v, %v", changes, err)
	}
	c.over("1.10.0")
}

// A write during a change wins. The pools that were Ready before the first of several changes count, and the version in
// force stays the one that worked last.
func TestAChangeThatIsSuperseded(t *testing.T) {
	c := changing(t)
	c.to("1.12.1", "1.10.0", 1)
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	c.blind["1.12.1"] = true
	c.play()
	if progress := c.run(PartRelease); progress.Wait == 0 {
		t.Fatalf("%+v", progress)
	}
	t.Log("another version, under which the pool is not Ready either")
	c.to("1.14.3", "1.10.0", 2)
	c.blind["1.14.3"] = true
	c.fails("1.14.3", "1.10.0", 2, "EC2NodeClass/workload was Ready before")

	t.Log("the version in force, in the middle of a change")
	c.to("1.12.1", "1.10.0", 3)
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	c.to("", "1.10.0", 4)
	c.changes("1.10.0", "", "downgraded from 1.12.1 release karpenter 1.10.0")

	t.Log("other parameters: the change goes on, and its time too")
	clear(c.blind)
	c.stuck["1.12.1"] = true
	c.to("1.12.1", "1.10.0", 5)
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	c.play()
	c.clock = c.clock.Add(changeTime)
	c.plan.Generation++
	c.fails("1.12.1", "1.10.0", 5, "1 old pods still there")
}

// What a new controller has not looked at proves nothing.
func TestWhatShowsThatTheNewControllerLeads(t *testing.T) {
	c := changing(t)
	waits := func(note string) {
		t.Helper()
		if progress := c.run(PartRelease); progress.Wait == 0 || !strings.Contains(progress.Note, note) {
			t.Fatalf("%+v, want to wait for %s", progress, note)
		}
	}
	c.to("1.12.1", "1.10.0", 1)
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	c.RolledOut(deployment)

	t.Log("an old pod has not ended")
	old := pod("old", ownership.WebTokenVariable)
	old["metadata"].(map[string]any)["finalizers"] = []any{"example.com/hold"}
	c.Create(old)
	c.delete(old)
	waits("Pod/kube-system/old: ending")
	c.clock = c.clock.Add(ending + time.Minute)

	t.Log("nobody has led since, or the leader has stepped down")
	waits("none of its pods leads (Lease karpenter-leader-election)")
	c.renew(c.clock.Add(time.Second), c.clock.Add(time.Second))
	c.leader("")
	waits("none of its pods leads (Lease karpenter-leader-election)")
	c.leader("host_uuid")
	c.renew(c.clock.Add(time.Second), c.clock.Add(time.Second))

	t.Log("it has just begun to")
	waits("Karpenter 1.12.1 looks at the pools")
	c.clock = c.clock.Add(looking - time.Second)
	waits("Karpenter 1.12.1 looks at the pools")
	c.clock = c.clock.Add(2 * time.Second)

	t.Log("the hash of the EC2NodeClass is that of the version before")
	waits("EC2NodeClass/workload: Karpenter 1.12.1 has not looked at it yet")
	c.Change(class, func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{hashVersion: "v5"}) })

	t.Log("somebody has paused the Deployment")
	c.Change(deployment, func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, true, "spec", "paused") })
	c.RolledOut(deployment)
	waits("its rollout is paused")
	c.Change(deployment, func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, false, "spec", "paused") })
	c.RolledOut(deployment)
	c.version = "1.12.1"
	c.changes("1.12.1", "1.10.0", "")
}

func (c *inCluster) delete(object k8stest.Object) {
	c.Helper()
	live := c.Get(object)
	client, err := c.step.Connect(ctx, plan.Cluster{})
	if err == nil {
		typed, podErr := client.PodsOf(ctx, c.Get(deployment))
		for i := range typed {
			if typed[i].Name == live.GetName() {
				podErr = client.Delete(ctx, k8s.Pod, &typed[i])
			}
		}
		err = podErr
	}
	if err != nil {
		c.Fatal(err)
	}
}

func (c *inCluster) leader(identity string) {
	c.Change(lease, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, identity, "spec", "holderIdentity")
	})
}

func (c *inCluster) renew(acquired, renewed time.Time) {
	const micro = "2006-01-02T15:04:05.000000Z"
	c.Change(lease, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, acquired.Format(micro), "spec", "acquireTime")
		_ = unstructured.SetNestedField(o.Object, renewed.Format(micro), "spec", "renewTime")
	})
}

// A pass is stopped before the pods of a version are replaced, and the next one comes after the change has had its time. The
// version works by then, and stays. An error of the connection does not count against it either.
func TestAChangeGoesOnAfterItsTime(t *testing.T) {
	c := changing(t)
	c.to("1.12.1", "1.10.0", 1)
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	c.play()
	c.clock = c.clock.Add(changeTime)
	c.plan.Generation++
	steady := c.step.Connect
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return broken{next} })
	c.step.Connect = c.as(config).Connect
	if _, err := c.step.Run(ctx, c.plan, PartRelease); err == nil || c.record().RolledBack != nil {
		t.Errorf("%v, %+v", err, c.record())
	}
	c.step.Connect = steady
	c.changes("1.12.1", "1.10.0", "")
}

// broken is a transport whose connections break. A connection that is reset is the same to the step, but client-go tries ten times
// more then, in as many seconds.
type broken struct{ http.RoundTripper }

// WrappedRoundTripper lets client-go reach the transport, to close its idle connections.
func (b broken) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }

func (broken) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

// Somebody deletes the Deployment after the step has found that its pods are not Ready.
func TestADeploymentThatGoesDuringTheLook(t *testing.T) {
	s := begin(t)
	client, err := s.step.Connect(ctx, s.plan.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Step: s.step, plan: s.plan, client: client}
	if pods, err := r.newPods(ctx, &attempt{}); err != nil || len(pods) > 0 {
		t.Errorf("%v, %v", pods, err)
	}
}

// Nobody needs a pool that is being removed to be Ready under another version.
func TestAPoolThatIsBeingRemovedIsNotWaitedFor(t *testing.T) {
	c := changing(t)
	c.blind["1.12.1"] = true
	c.to("1.12.1", "1.10.0", 1)
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	c.Change(pool, func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{ownership.TagRack: "demo", ownership.Retiring: "true"})
	})
	c.changes("1.12.1", "1.10.0", "")
}

// A controller that survives its own panic says why its pools are not Ready in its log alone, which goes with its pods.
func TestTheReasonHasTheEndOfTheControllersLog(t *testing.T) {
	c := changing(t)
	c.blind["1.12.1"] = true
	c.plan.Infrastructure.PodIdentity = false
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return logs{next} })
	c.step.Connect = c.as(config).Connect
	c.clock = time.Now().UTC() // that of the API server, which sets the age of pods
	c.to("1.12.1", "1.10.0", 1)
	c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
	c.Create(pod("running", ownership.WebTokenVariable))
	c.fails("1.12.1", "1.10.0", 1, "NodePool/workload was Ready before: Ready=False ValidationFailed not authorized; "+
		"the last errors in the log of pod running: Reconciler error: assignment to entry in nil map")
}

// logs is a transport to an API server whose kubelets answer.
type logs struct{ http.RoundTripper }

// WrappedRoundTripper lets client-go reach the transport, to close its idle connections.
func (l logs) WrappedRoundTripper() http.RoundTripper { return l.RoundTripper }

func (l logs) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/pods/running/log") || r.URL.Query().Get("previous") == "true" {
		return l.RoundTripper.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	_, _ = w.WriteString(`{"level":"ERROR","message":"Reconciler error","error":"assignment to entry in nil map"}`)
	return w.Result(), nil
}
