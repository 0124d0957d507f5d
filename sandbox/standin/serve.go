package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/sawhorse-io/sawhorse/sandbox/apifront"
)

// ServeHTTP answers one request, if its bearer may make it.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.settle()
	c.mu.Unlock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	caller, ok, err := c.tokens.AuthenticateToken(r.Context(), token)
	if err != nil || !ok {
		refuse(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	info, err := apifront.Requests.NewRequestInfo(r)
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if !info.IsResourceRequest { // discovery needs no permission
		c.serveDiscovery(w, r)
		return
	}
	k, found := c.kind(func(k kind) bool {
		return k.Group == info.APIGroup && k.Version == info.APIVersion && k.Resource == info.Resource
	})
	if decision, _, _ := c.rights.Authorize(r.Context(), attributes(caller.User, info)); decision != authorizer.DecisionAllow {
		refuse(w,
			apierrors.NewForbidden(k.GroupResource(), info.Name, fmt.Errorf("user %q cannot %s it", caller.User.GetName(), info.Verb)))
		return
	}
	if !found || info.Subresource != "" {
		http.NotFound(w, r)
		return
	}
	code, answer, err := c.do(k, info, r)
	if err != nil {
		refuse(w, err)
		return
	}
	respond(w, code, answer)
}

// do executes the verb of the request.
func (c *cluster) do(k kind, info *request.RequestInfo, r *http.Request) (int, any, error) {
	switch info.Verb {
	case "get":
		object, err := c.get(k, info.Namespace, info.Name)
		return http.StatusOK, object, err
	case "list":
		answer, err := c.listed(k, info.Namespace, r)
		return http.StatusOK, answer, err
	case "delete":
		done := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
		return http.StatusOK, done, c.remove(k, info.Namespace, info.Name)
	case "create", "update", "patch":
		return c.written(k, info, r)
	}
	return 0, nil, apierrors.NewMethodNotSupported(k.GroupResource(), info.Verb)
}

func (c *cluster) listed(k kind, namespace string, r *http.Request) (any, error) {
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil || query.Get("fieldSelector") != "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("selectors %s: %v", r.URL.RawQuery, err))
	}
	return map[string]any{
		"apiVersion": k.GroupVersion().String(), "kind": k.name + "List", "metadata": map[string]any{},
		"items": c.list(k, namespace, selector),
	}, nil
}

func (c *cluster) written(k kind, info *request.RequestInfo, r *http.Request) (int, any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	manager := r.URL.Query().Get("fieldManager")
	if manager == "" {
		manager, _, _ = strings.Cut(r.UserAgent(), "/")
	}
	if info.Verb == "patch" && media == string(types.MergePatchType) {
		object, err := c.merge(k, info.Namespace, info.Name, body, manager)
		return http.StatusOK, object, err
	}
	object, err := decode(body, media)
	if err != nil {
		return 0, nil, err
	}
	object.SetNamespace(info.Namespace)
	switch {
	case info.Verb == "create" && object.GetName() != "":
		object, err = c.create(k, object, manager)
		return http.StatusCreated, object, err
	case info.Verb == "update":
		object.SetName(info.Name)
		object, err = c.replace(k, object, manager)
		return http.StatusOK, object, err
	case info.Verb == "patch" && media == string(types.ApplyYAMLPatchType):
		object.SetName(info.Name)
		object, err = c.apply(k, object, manager, r.URL.Query().Get("force") == "true")
		return http.StatusOK, object, err
	}
	return 0, nil, unsupported(media)
}

// decode decodes an object in every form that client-go sends. Clients of the built-in kinds send protobuf.
func decode(body []byte, media string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	switch media {
	case runtime.ContentTypeProtobuf:
		typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		return object, err
	case runtime.ContentTypeJSON, string(types.ApplyYAMLPatchType):
		text, err := yaml.ToJSON(body)
		if err == nil {
			err = object.UnmarshalJSON(text)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return object, nil
	}
	return nil, unsupported(media)
}

func unsupported(media string) error {
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "", media, 0, false)
}

func respond(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // fails only if the caller has closed the connection
}

// refuse answers with the error's Status.
func refuse(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	answer := status.Status()
	answer.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	respond(w, int(answer.Code), answer)
}
