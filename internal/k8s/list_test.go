package k8s_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestAListThatNeverEnds(t *testing.T) {
	endless := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":"further"},"items":[{"metadata":{"name":"n"}}]}`)
	})
	read := 0
	err := endless.Each(t.Context(), k8s.Node, "", "",
		func(*unstructured.Unstructured) error { read++; return nil })
	if err == nil || !strings.Contains(err.Error(), "Node/*: list: the API server still names a further page after 1000 of them") ||
		read != 1000 {
		t.Errorf("%d objects, %v", read, err)
	}
}

// No objects are lost between pages.
func TestPages(t *testing.T) {
	cluster := k8stest.New(t)
	for i := range 205 {
		cluster.Create(account(fmt.Sprintf("page-%03d", i), "pages", nil))
	}
	all, err := client(t, cluster.Config).Ours(ctx, k8s.ServiceAccount, "pages")
	if err != nil || len(all) != 205 || all[204].GetName() != "page-204" {
		t.Errorf("%d objects, %v", len(all), err)
	}
}
