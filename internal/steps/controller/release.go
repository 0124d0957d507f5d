package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// history is how many revisions of a release are kept, for `helm history` and `helm rollback` in a human's hands.
const history = 5

// helm runs Helm's actions in our namespace. It never lets Helm wait: the state machine does.
type helm struct {
	config *action.Configuration
	rack   string
}

func newHelm(config *rest.Config, rack string) (*helm, error) {
	getter, err := newGetter(config)
	if err != nil {
		return nil, err
	}
	// Else Helm signs its fields with the name of the binary, which is "bootstrap" in a Lambda.
	kube.ManagedFieldsManager = names.FieldManager
	made := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := made.Init(getter, names.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	return &helm{config: made, rack: rack}, nil
}

// last is the newest revision of a release; nil where there is none.
func (h *helm) last(name string) (*release.Release, error) {
	found, err := h.config.Releases.Last(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("release %s: read: %w", name, err)
	}
	typed, ok := found.(*release.Release)
	if !ok {
		return nil, fmt.Errorf("release %s: read: unknown format %T", name, found)
	}
	return typed, nil
}

// ours tells whether the rack's mark is on a release.
func (h *helm) ours(r *release.Release) bool { return r.Labels[names.TagRack] == h.rack }

// same tells whether a release is deployed with exactly this chart version and these values.
func same(r *release.Release, wanted *chart.Chart, values map[string]any) (bool, error) {
	if r.Info.Status != common.StatusDeployed || r.Chart == nil || r.Chart.Metadata.Version != wanted.Metadata.Version {
		return false, nil
	}
	// The stored values came through JSON; the wanted ones must too before they can be compared.
	was, err := json.Marshal(r.Config)
	if err != nil {
		return false, err
	}
	is, err := json.Marshal(values)
	return bytes.Equal(was, is), err
}

func (h *helm) install(ctx context.Context, name string, wanted *chart.Chart, values map[string]any) error {
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace = name, names.Namespace
	install.Labels = map[string]string{names.TagRack: h.rack}
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, 30*time.Second
	install.ForceConflicts = true
	install.DisableOpenAPIValidation = true // server-side apply checks the same, without loading every schema
	_, err := install.RunWithContext(ctx, wanted, values)
	if err != nil {
		return fmt.Errorf("release %s: install: %w", name, err)
	}
	return nil
}

// upgrade makes a new revision. One that a killed Lambda left unfinished is first marked as failed, which is what it is:
// Helm would refuse to touch it for ever, and an upgrade on top of a failed revision makes whatever is missing.
func (h *helm) upgrade(ctx context.Context, last *release.Release, wanted *chart.Chart, values map[string]any) error {
	if status := last.Info.Status; status != common.StatusDeployed && status != common.StatusFailed {
		last.SetStatus(common.StatusFailed, "interrupted: found as "+status.String())
		if err := h.config.Releases.Update(last); err != nil {
			return fmt.Errorf("release %s: recover: %w", last.Name, err)
		}
	}
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace, upgrade.MaxHistory = names.Namespace, history
	upgrade.Labels = map[string]string{names.TagRack: h.rack}
	upgrade.ResetValues = true // the values are all of them, whatever an earlier revision had
	upgrade.ForceConflicts = true
	upgrade.WaitStrategy, upgrade.Timeout = kube.HookOnlyStrategy, 30*time.Second
	upgrade.DisableOpenAPIValidation = true
	if _, err := upgrade.RunWithContext(ctx, last.Name, wanted, values); err != nil {
		return fmt.Errorf("release %s: upgrade: %w", last.Name, err)
	}
	return nil
}

// uninstall removes the release, its objects and its history; one that stopped in the middle goes on. Helm's errors do not
// tell why a deletion failed, so each is taken for one that time cures: the step is called again, a few times.
func (h *helm) uninstall(name string) error {
	uninstall := action.NewUninstall(h.config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, 30*time.Second
	uninstall.DeletionPropagation = "background"
	if _, err := uninstall.Run(name); err != nil {
		return &steps.NotReady{Reason: fmt.Sprintf("release %s: uninstall: %v", name, err)}
	}
	return nil
}
