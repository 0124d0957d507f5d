package kubelet

import (
	"context"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pull returns the program that stands for the container's image. While there is none, it reports what a kubelet
// reports, and tries again. It returns false if the context ends first.
func (w *worker) pull(ctx context.Context) (program string, pulled bool) {
	for tries := int32(1); ; tries++ {
		program, err := w.program(ctx)
		if err == nil {
			return program, true
		}
		w.complain("ErrImagePull", err)
		w.tell(ctx, containerState{waiting: "ErrImagePull", message: err.Error()})
		if !sleep(ctx, impatient) {
			return "", false
		}
		w.tell(ctx, containerState{waiting: "ImagePullBackOff",
			message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %v", w.container().Image, err)})
		if !sleep(ctx, w.backOff(tries)) {
			return "", false
		}
	}
}

// A ConfigMap has, as keys, the tags of images that the registry does not have, though there is a program for them.
const (
	unpublished          = "unpublished"
	unpublishedNamespace = "default"
)

// program returns the file that stands for the container's image.
func (w *worker) program(ctx context.Context) (string, error) {
	image := w.container().Image
	// An image may have a digest besides its tag: repository:tag@sha256:….
	tagged, _, _ := strings.Cut(image, "@")
	program, known := w.Images[tagged]
	if known {
		_, err := os.Stat(program)
		known = err == nil
	}
	if lacks, err := w.client.CoreV1().ConfigMaps(unpublishedNamespace).Get(ctx, unpublished, metav1.GetOptions{}); err == nil {
		_, gone := lacks.Data[tagged[strings.LastIndex(tagged, ":")+1:]]
		known = known && !gone
	}
	if !known {
		return "", fmt.Errorf("rpc error: code = NotFound desc = failed to pull and unpack image %[1]q: "+
			"failed to resolve reference %[1]q: %[1]s: not found", image)
	}
	return program, nil
}
