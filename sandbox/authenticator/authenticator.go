// Package authenticator is the sandbox's token webhook. It checks bearer tokens as EKS's authenticator does.
//
// A token is a presigned STS request. This package checks its form: host, path, action, the signed header x-k8s-aws-id,
// expiry, no unknown parameter. MiniStack's STS verifies the signature: it gets the request as it was signed, with this
// cluster's name in the signed header. MiniStack must run with AUTH=true for that; otherwise it would accept any
// signature. With AUTH=true, Lambdas have session credentials of their own role, so the caller is the role.
//
// The caller is then looked up in the cluster's access entries and in aws-auth, depending on the cluster's
// authentication mode. MiniStack's wrapper returns the entries that have reached the API server: a new entry takes
// effect seconds after its creation (401 until then), and its access policy seconds after that (403 until then). The
// hidden permissions of the cluster's creator in mode CONFIG_MAP are not simulated.
package authenticator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	authentication "k8s.io/api/authentication/v1"
)

// Config has the authenticator's settings.
type Config struct {
	Cluster   string   // the EKS cluster's name
	MiniStack *url.URL // for STS and the access entries, bypassing the gateway and its counts
	Hosts     []string // hosts (with port) at which callers reach STS, in addition to AWS's own
	// AWSAuth reads the data of kube-system/aws-auth; none if there is no such ConfigMap.
	AWSAuth func(context.Context) (map[string]string, error)
	Now     func() time.Time
	Log     *slog.Logger
}

// Authenticator answers TokenReviews.
type Authenticator struct{ config Config }

// New returns an Authenticator.
func New(config Config) *Authenticator { return &Authenticator{config} }

// ServeHTTP answers one TokenReview. A token that is not accepted is not an error of the request: the API server then
// answers 401.
func (a *Authenticator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authentication.TokenReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&review); err != nil {
		http.Error(w, "TokenReview: decode: "+err.Error(), http.StatusBadRequest)
		return
	}
	status, err := a.Review(r.Context(), review.Spec.Token)
	if err != nil {
		a.config.Log.Info("token refused", "reason", err.Error())
		status = authentication.TokenReviewStatus{Error: err.Error()}
	} else {
		a.config.Log.Info("token accepted", "user", status.User.Username, "groups", status.User.Groups)
	}
	review.Spec, review.Status = authentication.TokenReviewSpec{}, status
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// Review returns the identity of a token's bearer. The error says why a token is not accepted.
func (a *Authenticator) Review(ctx context.Context, text string) (authentication.TokenReviewStatus, error) {
	var refused authentication.TokenReviewStatus
	t, err := decode(text, a.config.Hosts, a.config.Now())
	if err != nil {
		return refused, fmt.Errorf("token: decode: %w", err)
	}
	c, err := a.identify(ctx, t)
	if err != nil {
		return refused, err
	}
	u, err := a.lookUp(ctx, c)
	if err != nil {
		return refused, fmt.Errorf("caller %s: look up: %w", c.arn, err)
	}
	if u == nil {
		return refused, fmt.Errorf("caller %s: look up: %w", c.arn, errors.New("neither an access entry nor aws-auth names it"))
	}
	return authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{
		Username: u.name,
		UID:      "aws-iam-authenticator:" + c.account + ":" + c.id,
		Groups:   u.groups,
	}}, nil
}

// lookUp looks the caller up in the access entries and in aws-auth, as the cluster's mode requires. An entry takes
// precedence over aws-auth.
func (a *Authenticator) lookUp(ctx context.Context, c caller) (*user, error) {
	cluster, err := a.access(ctx)
	if err != nil {
		return nil, err
	}
	if cluster.Mode == "" {
		return nil, fmt.Errorf("cluster %s: %w", a.config.Cluster, errors.New("EKS does not know it"))
	}
	if cluster.Mode != "CONFIG_MAP" {
		if u, err := fromEntries(cluster.Entries, c); err != nil || u != nil {
			return u, err
		}
	}
	if cluster.Mode != "API" {
		return a.fromConfigMap(ctx, c)
	}
	return nil, nil
}
