package controller

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	ri "helm.sh/helm/v4/pkg/release"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// records wraps Helm's storage of releases: Secrets, which others may write too. Helm would delete what a record's
// manifest lists and create what its hooks contain, with the function's rights. So Helm sees the manifest that the
// embedded chart renders, and no hooks, whatever the record says. Only the methods overridden here may be used to read.
type records struct {
	driver.Driver
	// name is the release that Helm works on; manifest is its rendered manifest.
	name, manifest string
}

func (r *records) Get(key string) (ri.Releaser, error) {
	found, err := r.Driver.Get(key)
	if err != nil {
		return nil, err
	}
	return r.visible(found)
}

func (r *records) Query(labels map[string]string) ([]ri.Releaser, error) {
	found, err := r.Driver.Query(labels)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if found[i], err = r.visible(found[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Update records a new state of a release. The record keeps the objects of the time it was made, for `helm rollback`.
func (r *records) Update(key string, changed ri.Releaser) error {
	found, err := r.Driver.Get(key)
	if err != nil {
		return err
	}
	if _, err := r.visible(found); err != nil {
		return err
	}
	// visible has checked the type of found, and changed is a release that visible returned earlier.
	stored, state := found.(*release.Release), changed.(*release.Release)
	stored.Info = state.Info
	return r.Driver.Update(key, stored)
}

// somethingElse returns the error for a Secret that holds no release.
func (r *records) somethingElse() error {
	return fmt.Errorf("release %s: a Secret of it holds something else; delete those with `kubectl -n %s delete secrets -l "+
		"owner=helm,name=%s`, and the next pass installs it anew",
		r.name, ownership.Namespace, r.name)
}

// visible returns the part of a recorded release that Helm may see.
func (r *records) visible(found ri.Releaser) (*release.Release, error) {
	stored, ok := found.(*release.Release)
	if !ok || stored.Info == nil || stored.Chart == nil || stored.Chart.Metadata == nil {
		return nil, r.somethingElse()
	}
	return &release.Release{
		Name: r.name, Namespace: ownership.Namespace, Version: stored.Version, Labels: stored.Labels, Info: stored.Info, Config: stored.Config,
		Chart: &chart.Chart{Metadata: stored.Chart.Metadata}, Manifest: r.manifest, ApplyMethod: string(release.ApplyMethodServerSideApply),
	}, nil
}

// largestRecords is the limit for all revisions of a release together, unpacked, in bytes. It is several times the size
// of the CRDs' revisions and a fraction of the function's memory. Without it, a Secret of a few KB could unpack to
// gigabytes, and Helm would read them all.
const largestRecords = 32 << 20

// bounded reads Secrets with releases, and refuses those that are too large for the function's memory.
type bounded struct{ typed.SecretInterface }

func (b bounded) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error) {
	found, err := b.SecretInterface.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return found, fit([]corev1.Secret{*found})
}

func (b bounded) List(ctx context.Context, options metav1.ListOptions) (*corev1.SecretList, error) {
	found, err := b.SecretInterface.List(ctx, options)
	if err != nil {
		return nil, err
	}
	return found, fit(found.Items)
}

// fit returns an error if the releases in Secrets are too large together. Helm skips what cannot be unpacked.
func fit(secrets []corev1.Secret) error {
	left := int64(largestRecords)
	for i := range secrets {
		packed := bufio.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(secrets[i].Data["release"])))
		unpacked := io.Reader(packed)
		if zip, err := gzip.NewReader(packed); err == nil {
			unpacked = zip
		}
		n, _ := io.Copy(io.Discard, io.LimitReader(unpacked, left+1))
		if left -= n; left < 0 {
			return fmt.Errorf("secret %s/%s: the releases in it and its like unpack to more than %d MiB, which Karpenter's do not; "+
				"delete what Helm did not make: `kubectl -n %s get secrets -l owner=helm` lists them",
				secrets[i].Namespace, secrets[i].Name, largestRecords>>20, secrets[i].Namespace)
		}
	}
	return nil
}
