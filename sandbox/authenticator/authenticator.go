// Package authenticator is the sandbox's token webhook: it does what EKS's authenticator does with a bearer token.
//
// A token is a presigned STS request. Verified are its form (host, path, action, the signed header x-k8s-aws-id, expiry, no
// unknown parameter) here, and its signature by MiniStack's STS, which is handed the request as it was signed, with this
// cluster's name in the signed header; MiniStack must run with AUTH=true for that, without it any signature would do.
// Lambdas there hold session credentials of their own role (also only with AUTH=true), so the caller is the role.
// The caller is then looked up in the cluster's access entries and in aws-auth, as far as the cluster's authentication mode
// lets each count. What MiniStack's wrapper says of the entries is what the API server has heard of: a new entry comes seconds after
// it was made (until then 401), and the rights of its access policy seconds after that (until then 403). Not simulated: the hidden
// rights of the cluster's creator while the mode is CONFIG_MAP.
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

// Config is the authenticator's surroundings.
type Config struct {
	Cluster   string   // the EKS cluster's name
	MiniStack *url.URL // where STS and the access entries are asked for, past the gateway and its counts
	Hosts     []string // hosts (with port) under which callers know STS, next to AWS's own
	// AWSAuth reads the data of kube-system/aws-auth; none if there is no such ConfigMap.
	AWSAuth func(context.Context) (map[string]string, error)
	Now     func() time.Time
	Log     *slog.Logger
}

// Authenticator answers TokenReviews.
type Authenticator struct{ config Config }

// New returns an Authenticator.
func New(config Config) *Authenticator { return &Authenticator{config} }

// ServeHTTP answers one TokenReview. A token that is not accepted is no error: the API server answers its bearer 401.
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

// Review says who bears a token; an error is why it is not accepted.
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
		Extra: map[string]authentication.ExtraValue{
			"accessKeyId": {c.accessKey}, "arn": {c.arn}, "canonicalArn": {c.canonical},
			"principalId": {c.id}, "sessionName": {c.session},
		},
	}}, nil
}

// lookUp asks the access entries and aws-auth, as the cluster's mode says. An entry wins over aws-auth.
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
