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

// listing is an API server that answers every request with this page. With more, the page always names another page.
func listing(t *testing.T, more bool, kind, items string) *k8s.Client {
	t.Helper()
	return served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		token := ""
		if more {
			token = "further"
		}
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, kind, token, items)
	})
}

func TestAListThatNeverEnds(t *testing.T) {
	read := 0
	err := listing(t, true, "NodeList", `{"metadata":{"name":"n"}}`).Each(t.Context(), k8s.Node, "", "",
		func(*unstructured.Unstructured) error { read++; return nil })
	if err == nil || !strings.Contains(err.Error(), "Node/*: list: the API server still names a further page after 1000 of them") ||
		read != 1000 {
		t.Errorf("%d objects, %v", read, err)
	}
}

func TestAListThatFitsNowhere(t *testing.T) {
	large := `{"metadata":{"name":"n"},"spec":{"a":[` + strings.Repeat(`1,`, 40_000) + `1]}}`
	_, err := listing(t, true, "NodeList", large).List(t.Context(), k8s.Node, "", "")
	if err == nil ||
		!strings.Contains(err.Error(), "Node/*: list: the 12 objects that were read so far are all that fits into a function's memory") {
		t.Error(err)
	}
}

// What is read is reported and looked up elsewhere, so it must be what was requested.
func TestAnswersAboutSomethingElse(t *testing.T) {
	for _, c := range []struct{ kind, items, want string }{
		{"SecretList", `{"metadata":{"name":"n"}}`, `Node/*: list: the API server answered with "Secret" of "v1"`},
		{"NodeList", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"n"}}`, `"Pod" of "v1"`},
		{"NodeList", `{"kind":"Node","apiVersion":"karpenter.sh/v1","metadata":{"name":"n"}}`, `"Node" of "karpenter.sh/v1"`},
		{"NodeList", `{"metadata":{"name":"` + strings.Repeat("n", 1<<20) + `"}}`, "which no object can have"},
		{"NodeList", `{"metadata":{"name":"../n"}}`, "which no object can have"},
		{"NodeList", `{"metadata":{}}`, "which no object can have"},
	} {
		_, err := listing(t, false, c.kind, c.items).List(t.Context(), k8s.Node, "", "")
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
			t.Errorf("%.500v, want %q", err, c.want)
		}
	}
	other := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"n"}}`)
	})
	if _, err := other.Get(t.Context(), k8s.Node, "", "n"); err == nil ||
		!strings.Contains(err.Error(), `Node/n: get: the API server answered with "Secret"`) {
		t.Error(err)
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
