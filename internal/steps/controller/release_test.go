package controller

import (
	"errors"
	"io"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	kubefake "helm.sh/helm/v4/pkg/kube/fake"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"

	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// Helm does not say that it was the connection that broke, so the step must be called again whatever it was.
func TestAFailedUninstallIsTriedAgain(t *testing.T) {
	broken := &kubefake.FailingKubeClient{PrintingKubeClient: kubefake.PrintingKubeClient{Out: io.Discard}, BuildDummy: true, DeleteError: errors.New("EOF")}
	config := &action.Configuration{Releases: storage.Init(driver.NewMemory()), KubeClient: broken, Capabilities: common.DefaultCapabilities}
	if err := config.Releases.Create(&release.Release{Name: "karpenter", Namespace: "kube-system", Version: 1, Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", Info: &release.Info{Status: releasecommon.StatusDeployed}}); err != nil {
		t.Fatal(err)
	}
	err := (&helm{config: config}).uninstall("karpenter")
	if !errors.As(err, new(*steps.NotReady)) {
		t.Errorf("%v", err)
	}
}
