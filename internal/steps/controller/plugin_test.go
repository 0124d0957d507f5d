package controller

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

const pluginSubject = "DaemonSet/kube-system/nvidia-device-plugin-daemonset"

var plugin = k8stest.Object{"apiVersion": "apps/v1", "kind": "DaemonSet",
	"metadata": map[string]any{"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"}}

func (s *scene) daemonSet() *appsv1.DaemonSet {
	s.Helper()
	typed := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Get(plugin).Object, typed); err != nil {
		s.Fatal(err)
	}
	return typed
}

func TestDevicePluginComesAndGoes(t *testing.T) {
	s := begin(t)
	t.Cleanup(func() { s.Remove(plugin) })

	t.Log("not wanted and not there: nothing to do")
	s.run(PartPlugin)

	t.Log("wanted: installed, without waiting for pods; a second run does nothing")
	s.plan.Controller.DevicePlugin = devicePlugin("demo")
	if progress := s.run(PartPlugin, "created "+pluginSubject); progress.Wait != 0 {
		t.Errorf("it waits: %+v", progress)
	}
	first := s.Get(plugin).GetResourceVersion()
	s.run(PartPlugin)
	if got := s.Get(plugin).GetResourceVersion(); got != first {
		t.Error("the second run wrote something")
	}

	t.Log("what somebody else sets back is repaired and reported; what they add stays")
	edit := func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"theirs": "1"})
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["image"] = "example.com/plugin:1"
		_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
	}
	s.Change(plugin, edit)
	progress := s.run(PartPlugin, "updated "+pluginSubject)
	if len(progress.Incidents) != 1 || progress.Incidents[0].Parameter != "nvidia_device_plugin_enable" {
		t.Errorf("warnings %v", progress.Incidents)
	}
	if live := s.daemonSet(); live.Spec.Template.Spec.Containers[0].Image != ownership.DevicePluginImage || live.Annotations["theirs"] != "1" {
		t.Errorf("%+v", live)
	}

	t.Log("a second time it is left, and that is told")
	s.Change(plugin, edit)
	for range 2 {
		progress = s.run(PartPlugin)
		if len(progress.Warnings) != 1 || !progress.Unfinished || !strings.Contains(progress.Warnings[0].Message,
			`.spec.template.spec.containers[name="nvidia-device-plugin-ctr"].image is contested: somebody has set it back 2 times`) {
			t.Errorf("warnings %v", progress.Warnings)
		}
	}

	t.Log("no longer wanted: deleted, and that once")
	s.plan.Controller.DevicePlugin = nil
	s.run(PartPlugin, "deleted "+pluginSubject)
	k8stest.Eventually(t, func() bool { return s.Get(plugin) == nil })
	s.run(PartPlugin)
}

// devicePlugin returns the plan's DaemonSet with the label of a rack.
func devicePlugin(rack string) plan.Object {
	made := wanted(params.Config{NVIDIADevicePlugin: true}).Controller.DevicePlugin
	made["metadata"].(map[string]any)["labels"] = map[string]any{ownership.TagRack: rack}
	return made
}

func TestDevicePluginOfSomebodyElse(t *testing.T) {
	for _, owner := range []string{"", "other"} {
		s := begin(t)
		theirs := devicePlugin(owner)
		if owner == "" {
			delete(theirs["metadata"].(map[string]any), "labels")
		}
		before := s.Create(theirs).GetResourceVersion()

		s.plan.Controller.DevicePlugin = devicePlugin("demo")
		_, err := s.step.Run(ctx, s.plan, PartPlugin)
		var rejected *outcome.Rejected
		if !errors.As(err, &rejected) || rejected.Problems[0].Parameter != "nvidia_device_plugin_enable" ||
			!strings.Contains(err.Error(), pluginSubject) || !strings.Contains(err.Error(), "kubectl -n kube-system delete daemonset") {
			t.Errorf("owner %q: %v", owner, err)
		}
		s.plan.Controller.DevicePlugin = nil
		s.run(PartPlugin) // not ours, so it stays
		if after := s.Get(plugin); after == nil || after.GetResourceVersion() != before {
			t.Errorf("owner %q: it was touched: %v", owner, after)
		}
		s.Remove(plugin)
	}
}

// The plugin is turned off and on again while Kubernetes still deletes the first DaemonSet.
func TestDevicePluginOnItsWayOut(t *testing.T) {
	s := begin(t)
	leaving := devicePlugin("demo")
	leaving["metadata"].(map[string]any)["finalizers"] = []any{"sawhorse.dev/test"}
	s.Create(leaving)
	s.run(PartPlugin, "deleted "+pluginSubject)
	s.run(PartPlugin)
	s.plan.Controller.DevicePlugin = devicePlugin("demo")
	if progress := s.run(PartPlugin); progress.Wait == 0 || !strings.Contains(progress.Note, "being deleted") {
		t.Errorf("%+v", progress)
	}
	s.Change(plugin, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	s.run(PartPlugin, "created "+pluginSubject)
	s.Remove(plugin)
}
