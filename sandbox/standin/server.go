// Package standin takes the place of the API servers of many EKS clusters, so that a hundred racks can be on in one
// sandbox.
//
// Real are: tokens, which are reviewed as in the sandbox's API server, RBAC, server-side apply with its field managers
// and conflicts, optimistic locking, and discovery. Objects are in memory, separate for each cluster. Controllers are
// replaced by a status that appears a moment after a write: Deployments are available, CRDs are established and served,
// NodePools and EC2NodeClasses are Ready, and a pod that asks for a node of a NodePool has one.
//
// Missing are: schemas, defaults, validation and admission; watches, subresources, strategic merge patches and
// deletions that wait for finalizers; and everything else that pods would do, including Karpenter and its AWS calls.
package standin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Prefix is the prefix of the paths that a Server answers. The cluster's name and the API's own path follow.
const Prefix = "/clusters/"

// Config has the settings that all clusters share.
type Config struct {
	// Objects returns the initial objects of a cluster.
	Objects func(cluster string) ([]*unstructured.Unstructured, error)
	// Review returns the identity of a token's bearer. awsAuth reads the data of the cluster's ConfigMap
	// kube-system/aws-auth.
	Review func(ctx context.Context, cluster, token string, awsAuth func() map[string]string) (authentication.TokenReviewStatus, error)
	// Front wraps the handler of each cluster.
	Front func(http.Handler) http.Handler
	Now   func() time.Time
}

// Server is the API server of every cluster that is requested.
type Server struct {
	config   Config
	mu       sync.Mutex
	clusters map[string]http.Handler
}

// New returns a Server without clusters.
func New(config Config) *Server {
	return &Server{config: config, clusters: map[string]http.Handler{}}
}

// ServeHTTP answers a request for the cluster in the path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix), "/")
	c, err := s.cluster(name)
	if err != nil {
		refuse(w, apierrors.NewInternalError(err))
		return
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = "/"+path, ""
	c.ServeHTTP(w, r)
}

// cluster returns the cluster of a name. It creates the cluster at the first request.
func (s *Server) cluster(name string) (http.Handler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[name]; c != nil {
		return c, nil
	}
	c := newCluster(s.config.Now)
	objects, err := s.config.Objects(name)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := c.seed(object); err != nil {
			return nil, err
		}
	}
	review := authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		status, err := s.config.Review(ctx, name, token, func() map[string]string { return c.data("kube-system", "aws-auth") })
		if err != nil || !status.Authenticated {
			return nil, false, errors.Join(errRefused, err)
		}
		who := &user.DefaultInfo{Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups}
		return &authenticator.Response{User: who}, true, nil
	})
	// Reviews are cached as long as in the sandbox's own API server.
	c.tokens = cache.New(review, false, time.Second, time.Second)
	s.clusters[name] = s.config.Front(c)
	return s.clusters[name], nil
}

var errRefused = errors.New("the token is not accepted")
