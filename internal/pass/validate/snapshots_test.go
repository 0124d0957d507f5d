package validate

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const (
	inS3     = "s3://config/racks/pool.json"
	poolText = `{"nodePool":{"weight":10}}`
)

func (s *scene) settings() store.Settings {
	s.Helper()
	settings, err := s.store.Settings(s.Context(), "demo")
	s.must(err)
	if settings == nil {
		s.Fatal("there are no settings")
	}
	return *settings
}

// keep does what the function report does with the values of the last iteration.
func (s *scene) keep(number int64) {
	s.Helper()
	s.reported(outcome.StateReconciled)
	s.must(s.store.AddSnapshot(s.Context(), "demo", store.Snapshot{Summary: store.Summary{Number: number}, Values: s.settings().Values}))
}

// The settings have what is written and not unset, the text of what is in S3, and the changes that wrote it, also those of earlier
// iterations that no snapshot was made of.
func TestSettings(t *testing.T) {
	s := begin(t, auth, on, "karpenter_config="+inS3, "node_disk=unset", "tags=default")
	s.cloud.S3.Objects["config/racks/pool.json"] = poolText
	s.pass(false)
	got := s.settings()
	want := map[string]string{"cluster_name": "demo", "karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_config": inS3}
	if !maps.Equal(got.Params, want) || got.Objects[inS3] != poolText || got.Of != s.last().Values || len(got.Changes) > 0 {
		t.Errorf("%+v, and the run %s", got, s.last().Values)
	}
	s.keep(1)
	for i, text := range []string{`{"set":{"node_disk":"30"},"note":"a"}`, `{"set":{"node_type":"m5.large"},"note":"b"}`} {
		s.change(text)
		s.pass(false) // it fails, so that no snapshot is made
		s.finish()
		if got := s.settings(); len(got.Changes) != i+1 || got.Changes[i].Note != text[len(text)-3:len(text)-2] {
			t.Errorf("%+v", got.Changes)
		}
	}
	if got := s.settings().Changes[0].Names; got["node_disk"] != 2 {
		t.Errorf("wrote %v", got)
	}
	settings := s.settings()
	settings.Changes[0].Version = 90 // one that the record of changes does not have any more
	s.must(s.store.SaveSettings(s.Context(), settings))
	s.write("node_disk=31")
	s.pass(false)
	if got := s.settings().Changes; len(got) != 3 || got[0].Version != 90 {
		t.Errorf("%+v", got)
	}
}

// Who wrote what while the rack was paused is known when it goes on, though the record of changes keeps an ended one for minutes.
func TestChangesDuringAPause(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.keep(1)
	s.write("paused=true")
	for _, text := range []string{`{"set":{"node_disk":"30"},"note":"a"}`, `{"set":{"node_type":"m5.large"},"note":"b"}`} {
		s.change(text)
		s.pass(false)
		s.finish()
		s.cloud.Pass(4 * time.Minute)
	}
	s.write("paused=false", "node_disk=30", "node_type=m5.large")
	s.pass(false)
	if got := s.settings().Changes; len(got) != 2 || got[0].Note != "a" || got[1].Note != "b" {
		t.Errorf("%+v", got)
	}
}

// Values that change nothing else are reported too, because whoever goes back means the values. What stays the same is not saved again.
func TestValuesThatMakeNoStepDue(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.keep(1)
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
	s.write("karpenter_cpu_limit=100") // the default
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	if s.settings().Params["karpenter_cpu_limit"] != "100" {
		t.Errorf("%+v", s.settings())
	}
	s.keep(2)
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
	s.wrote(leaseItem)
	t.Log("a rejected rack, and one that is paused, have no new values in force")
	for _, bad := range []string{"karpenter_cpu_limit=many", "paused=true"} {
		s.write(bad)
		s.pass(false)
		if s.last().Values != "" || s.settings().Params["karpenter_cpu_limit"] != "100" {
			t.Errorf("%s: %+v", bad, s.settings())
		}
		s.write("karpenter_cpu_limit=100", "paused")
	}
}

// A change that was made from other values than the rack has is refused as a whole, and says what differs.
func TestAChangeThatExpectsASnapshot(t *testing.T) {
	s := begin(t, auth, on, "node_disk=20", "karpenter_config="+inS3)
	s.cloud.S3.Objects["config/racks/pool.json"] = poolText
	s.pass(false)
	s.keep(1)
	s.change(`{"set":{"node_disk":"30"},"expect":1}`)
	if s.pass(false); s.became() != "1 Writing " {
		t.Errorf("made from what is there: %s, %v", s.became(), s.refusals)
	}
	s.write("node_disk=30", "karpenter_cpu_limit="+strings.Repeat("9", 5))
	s.finish()
	s.cloud.S3.Objects["config/racks/pool.json"] = `{"nodePool":{"weight":20}}`
	s.change(`{"set":{"karpenter_memory_limit_gb":"7"},"expect":1}`)
	s.pass(false)
	want := `expect is 1, and the rack's values have changed since snapshot 1: karpenter_config to another text than it was, now ` +
		`"s3://config/racks/pool.json", karpenter_cpu_limit from unset to "99999", node_disk from "20" to "30"; `
	if len(s.refusals) != 1 || !strings.HasPrefix(s.refusals[0], want) || s.records().Params["karpenter_memory_limit_gb"] != "" {
		t.Errorf("%q, want %q", s.refusals, want)
	}
	s.change(`{"set":{"karpenter_memory_limit_gb":"7"},"expect":9}`)
	s.pass(false)
	if len(s.refusals) != 2 || !strings.Contains(s.refusals[1], "the rack has no such snapshot") {
		t.Errorf("%q", s.refusals)
	}
	t.Log("two changes from one snapshot: the second does not overwrite the first")
	s.keep(2)
	s.change(`{"set":{"karpenter_memory_limit_gb":"7"},"expect":2}`)
	s.change(`{"set":{"karpenter_memory_limit_gb":"8"},"expect":2}`)
	s.pass(false)
	if len(s.refusals) != 3 || !strings.Contains(s.refusals[2], `karpenter_memory_limit_gb from unset to "7"`) ||
		s.records().Params["karpenter_memory_limit_gb"] != "7" {
		t.Errorf("%q", s.refusals)
	}
}
