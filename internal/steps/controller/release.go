package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// history is how many revisions of a release are kept, so that a person can use `helm history` and `helm rollback`.
const history = 5

// helm runs Helm's actions in Karpenter's namespace, on one release at a time. Helm never waits for objects: the state
// machine does.
type helm struct {
	config  *action.Configuration
	records *records
	rack    string
	failed  *atomic.Pointer[error] // the error of the last failed request
}

func newHelm(config *rest.Config, rack string) (*helm, error) {
	failed := new(atomic.Pointer[error])
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return attentive{next, failed} })
	getter, err := newGetter(config)
	if err != nil {
		return nil, err
	}
	// By default Helm uses the name of the binary as field manager, which is "bootstrap" in a Lambda function.
	kube.ManagedFieldsManager = ownership.FieldManager
	made := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := made.Init(getter, ownership.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	client, err := typed.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	secrets := driver.NewSecrets(bounded{client.Secrets(ownership.Namespace)})
	secrets.SetLogger(slog.DiscardHandler)
	h := &helm{config: made, records: &records{Driver: secrets}, rack: rack, failed: failed}
	made.Releases, made.Capabilities = storage.Init(h.records), capabilities
	return h, nil
}

// attentive is a transport that keeps the error of the last failed request.
type attentive struct {
	http.RoundTripper
	failed *atomic.Pointer[error]
}

func (a attentive) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(request)
	if err != nil {
		a.failed.Store(&err)
	}
	return response, err
}

// WrappedRoundTripper lets client-go reach the transport, to close its idle connections.
func (a attentive) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }

// cause returns the error of the last failed request if Helm's error contains its text. Helm keeps only the text of
// errors that occur while it discovers the cluster's kinds.
func (h *helm) cause(err error) error {
	if failed := h.failed.Load(); failed != nil && strings.Contains(err.Error(), (*failed).Error()) {
		return *failed
	}
	return err
}

// last returns a release's newest revision, nil if there is none. All further actions are about this release.
func (h *helm) last(wanted rendered) (*release.Release, error) {
	name := wanted.name
	h.records.name, h.records.manifest, h.config.Capabilities = name, wanted.manifest, wanted.capabilities
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

// ours reports whether a release carries the rack's label.
func (h *helm) ours(r *release.Release) bool { return ownership.OwnedObject(r.Labels, h.rack) }

// difference describes what an upgrade would do. It returns nothing if the release is deployed with exactly the wanted
// chart version and values.
func difference(r *release.Release, wanted rendered) (string, error) {
	switch was := r.Chart.Metadata.Version; {
	case karpenter.Compare(was, wanted.chart.Metadata.Version) > 0:
		return "downgraded from " + was, nil
	case was != wanted.chart.Metadata.Version:
		return "upgraded from " + was, nil
	}
	// The stored values were decoded from JSON, so the wanted ones are encoded and decoded too before the comparison.
	encoded, err := json.Marshal(wanted.values)
	if err != nil {
		return "", err
	}
	var values map[string]any
	if err := json.Unmarshal(encoded, &values); err != nil {
		return "", err
	}
	was, is := map[string]any{}, map[string]any{}
	flatten(was, "", r.Config)
	flatten(is, "", values)
	if changed := changedValues(was, is); len(changed) > 0 {
		return "updated: " + strings.Join(changed, ", "), nil
	}
	if r.Info.Status != common.StatusDeployed {
		return "applied again", nil
	}
	return "", nil
}

// flatten turns nested maps into one map, with paths as in Helm's --set.
func flatten(flat map[string]any, path string, values map[string]any) {
	for name, value := range values {
		if inner, ok := value.(map[string]any); ok {
			flatten(flat, path+name+".", inner)
		} else {
			flat[path+name] = value
		}
	}
}

// changedValues lists the values that differ, written as for --set.
func changedValues(was, is map[string]any) []string {
	var all []string
	for path, value := range is {
		before, there := was[path]
		switch text := fmt.Sprintf("%s=%v", path, value); {
		case !there:
			all = append(all, text)
		case !reflect.DeepEqual(before, value):
			all = append(all, fmt.Sprintf("%s (was %v)", text, before))
		}
	}
	for path := range was {
		if _, there := is[path]; !there {
			all = append(all, path+" unset")
		}
	}
	slices.Sort(all)
	return all
}

func (h *helm) install(ctx context.Context, wanted rendered) error {
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace = wanted.name, ownership.Namespace
	install.Labels = map[string]string{ownership.TagRack: h.rack}
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, 30*time.Second
	install.ForceConflicts = true
	install.DisableOpenAPIValidation = true // server-side apply validates the same without loading every schema
	_, err := install.RunWithContext(ctx, wanted.chart, wanted.values)
	if err != nil {
		return fmt.Errorf("release %s: install: %w", wanted.name, h.cause(err))
	}
	return nil
}

// upgrade makes a new revision. A revision that an interrupted call left unfinished is first marked as failed:
// otherwise Helm would refuse to touch the release for ever. An upgrade after a failed revision creates whatever is
// missing.
func (h *helm) upgrade(ctx context.Context, last *release.Release, wanted rendered) error {
	if status := last.Info.Status; status != common.StatusDeployed && status != common.StatusFailed {
		last.SetStatus(common.StatusFailed, "interrupted: found as "+status.String())
		if err := h.config.Releases.Update(last); err != nil {
			return fmt.Errorf("release %s: recover: %w", last.Name, err)
		}
	}
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace, upgrade.MaxHistory = ownership.Namespace, history
	upgrade.Labels = map[string]string{ownership.TagRack: h.rack}
	upgrade.ResetValues = true // the values are complete, whatever an earlier revision had
	upgrade.ForceConflicts = true
	upgrade.WaitStrategy, upgrade.Timeout = kube.HookOnlyStrategy, 30*time.Second
	upgrade.DisableOpenAPIValidation = true
	if _, err := upgrade.RunWithContext(ctx, last.Name, wanted.chart, wanted.values); err != nil {
		return fmt.Errorf("release %s: upgrade: %w", last.Name, h.cause(err))
	}
	return nil
}

// uninstall removes the release, its objects and its history, and resumes an interrupted removal. Helm's errors do not
// say why a deletion failed, so each of them asks for a few more calls of the step.
func (h *helm) uninstall(name string) error {
	uninstall := action.NewUninstall(h.config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, 30*time.Second
	uninstall.DeletionPropagation = "background"
	if _, err := uninstall.Run(name); err != nil {
		return &outcome.NotYet{Reason: outcome.Unready, Note: fmt.Sprintf("release %s: uninstall: %v", name, err)}
	}
	return nil
}
