package controller

import (
	"encoding/json"
	"errors"
	"io"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	kubefake "helm.sh/helm/v4/pkg/kube/fake"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Helm does not say whether the connection broke, so the step is called again after every error.
func TestAFailedUninstallIsTriedAgain(t *testing.T) {
	broken := &kubefake.FailingKubeClient{PrintingKubeClient: kubefake.PrintingKubeClient{Out: io.Discard}, BuildDummy: true,
		DeleteError: errors.New("EOF")}
	config := &action.Configuration{Releases: storage.Init(driver.NewMemory()), KubeClient: broken, Capabilities: common.DefaultCapabilities}
	deployed := &release.Release{Name: "karpenter", Namespace: "kube-system", Version: 1,
		Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", Info: &release.Info{Status: releasecommon.StatusDeployed}}
	if err := config.Releases.Create(deployed); err != nil {
		t.Fatal(err)
	}
	err := (&helm{config: config}).uninstall("karpenter")
	if !outcome.IsNotYet(err, outcome.Unready) {
		t.Errorf("%v", err)
	}
}

// The change names what an upgrade does: another version, other values, or applying the same again after an unfinished
// revision.
func TestWhatAnUpgradeIsAbout(t *testing.T) {
	values := map[string]any{"replicas": 2, "settings": map[string]any{"clusterName": "demo", "isolatedVPC": true}}
	made := func(version string, status releasecommon.Status, stored string) *release.Release {
		r := &release.Release{Chart: &chart.Chart{Metadata: &chart.Metadata{Version: version}}, Info: &release.Info{Status: status}}
		if err := json.Unmarshal([]byte(stored), &r.Config); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const same = `{"replicas":2,"settings":{"clusterName":"demo","isolatedVPC":true}}`
	for _, c := range []struct {
		was  *release.Release
		want string
	}{
		{made("1.10.0", releasecommon.StatusDeployed, same), ""},
		{made("1.9.0", releasecommon.StatusDeployed, same), "upgraded from 1.9.0"},
		{made("1.10.0", releasecommon.StatusPendingUpgrade, same), "applied again"},
		{made("1.10.0", releasecommon.StatusDeployed, `{"replicas":1,"settings":{"clusterName":"demo","isolatedVPC":true}}`),
			"updated: replicas=2 (was 1)"},
		{made("1.10.0", releasecommon.StatusFailed, `{"replicas":2,"logLevel":"debug","settings":{"clusterName":"demo"}}`),
			"updated: logLevel unset, settings.isolatedVPC=true"},
	} {
		wanted := rendered{chart: &chart.Chart{Metadata: &chart.Metadata{Version: "1.10.0"}}, values: values}
		if got, err := difference(c.was, wanted); err != nil || got != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
}
