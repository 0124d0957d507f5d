package authenticator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
)

const (
	roleARN = "arn:aws:iam::000000000000:role/sawhorse/viewer"
	session = "arn:aws:sts::000000000000:assumed-role/viewer/me@x"
	userARN = "arn:aws:iam::000000000000:user/team/ann"
)

// fakeMiniStack answers as MiniStack does. STS knows one access key, whose signature is valid for one cluster.
type fakeMiniStack struct {
	caller  string
	cluster map[string]any
	// what STS was asked
	host, header, query string
}

func (f *fakeMiniStack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_sandbox/access-entries" {
		if r.URL.Query().Get("cluster") != "demo" {
			f.cluster = map[string]any{"authenticationMode": "", "accessEntries": []any{}}
		}
		_ = json.NewEncoder(w).Encode(f.cluster)
		return
	}
	f.host, f.header, f.query = r.Host, r.Header.Get(clusterHeader), r.URL.RawQuery
	if f.header != "demo" || r.URL.Query().Get("X-Amz-Signature") != "00ff" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>")
		return
	}
	fmt.Fprintf(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>%s</Arn><UserId>AROA1:me</UserId>`+
		`<Account>000000000000</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, f.caller)
}

// review sends a token through the webhook and returns its answer.
func review(t *testing.T, f *fakeMiniStack, awsAuth map[string]string, token string) authentication.TokenReviewStatus {
	t.Helper()
	server := httptest.NewServer(f)
	defer server.Close()
	at, _ := url.Parse(server.URL)
	a := New(Config{
		Cluster: "demo", MiniStack: at, Hosts: []string{gatewayHost},
		AWSAuth: func(context.Context) (map[string]string, error) { return awsAuth, nil },
		Now:     func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	body, _ := json.Marshal(authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}})
	answer := httptest.NewRecorder()
	a.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
	var reviewed authentication.TokenReview
	if err := json.Unmarshal(answer.Body.Bytes(), &reviewed); err != nil {
		t.Fatal(err)
	}
	return reviewed.Status
}

func cluster(mode string, entries ...map[string]any) map[string]any {
	return map[string]any{"authenticationMode": mode, "accessEntries": entries}
}

func entryOf(principal string, more ...any) map[string]any {
	e := map[string]any{"principalArn": principal, "type": "STANDARD", "roleId": "AROA1", "currentRoleId": "AROA1"}
	for i := 0; i < len(more); i += 2 {
		e[more[i].(string)] = more[i+1]
	}
	return e
}

func policy(name, scope string) []any {
	return []any{map[string]any{
		"policyArn": "arn:aws:eks::aws:cluster-access-policy/" + name, "accessScope": map[string]any{"type": scope},
	}}
}

const roles = `
- rolearn: arn:aws:iam::000000000000:role/Viewer
  username: map:{{SessionName}}:{{AccountID}}
  groups: [from-map]
`

func TestWho(t *testing.T) {
	admin := policy("AmazonEKSClusterAdminPolicy", "cluster")
	for _, c := range []struct {
		name, caller string
		cluster      map[string]any
		user         string // empty: rejected
		groups       []string
	}{
		{"an entry finds a role by its name, with its path", session,
			cluster("API", entryOf(roleARN, "kubernetesGroups", []string{"g"})),
			"arn:aws:sts::000000000000:assumed-role/viewer/me-x", []string{"g"}},
		{"the entry's user name is used", session, cluster("API", entryOf(roleARN, "username", "u:{{SessionName}}")), "u:me-x", nil},
		{"the admin policy gives the admin group", userARN, cluster("API", entryOf(userARN, "policies", admin)), userARN,
			[]string{ClusterAdminGroup}},
		{"in a namespace it does not", userARN,
			cluster("API", entryOf(userARN, "policies", policy("AmazonEKSClusterAdminPolicy", "namespace"))), userARN, nil},
		{"the policy that shows everything gives the group that reads", userARN,
			cluster("API", entryOf(userARN, "policies", policy("AmazonEKSAdminViewPolicy", "cluster"))), userARN, []string{AdminViewGroup}},
		{"another policy does not", userARN, cluster("API", entryOf(userARN, "policies", policy("AmazonEKSViewPolicy", "cluster"))),
			userARN, nil},
		{"a role made again is another one", session, cluster("API", entryOf(roleARN, "roleId", "AROA0")), "", nil},
		{"also where aws-auth would let it in", session, cluster("API_AND_CONFIG_MAP", entryOf(roleARN, "roleId", "AROA0")), "", nil},
		{"a role that is gone is none", session, cluster("API", entryOf(roleARN, "roleId", "", "currentRoleId", "")), "", nil},
		{"another role's entry is not ours", session, cluster("API", entryOf(roleARN+"2")), "", nil},
		{"another account's neither", session, cluster("API", entryOf(strings.Replace(roleARN, "0000:", "0001:", 1))), "", nil},
		{"entries do not count in mode CONFIG_MAP", userARN, cluster("CONFIG_MAP", entryOf(userARN)), "", nil},
		{"aws-auth does, in any letter case, without the path", session, cluster("CONFIG_MAP"), "map:me-x:000000000000",
			[]string{"from-map"}},
		{"an entry wins over aws-auth", session, cluster("API_AND_CONFIG_MAP", entryOf(roleARN, "username", "entry")), "entry", nil},
		{"aws-auth is next", session, cluster("API_AND_CONFIG_MAP"), "map:me-x:000000000000", []string{"from-map"}},
		{"aws-auth does not count in mode API", session, cluster("API"), "", nil},
		{"a user in aws-auth", userARN, cluster("CONFIG_MAP"), "", nil},
		{"a cluster that EKS does not know", userARN, cluster(""), "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := review(t, &fakeMiniStack{caller: c.caller, cluster: c.cluster}, map[string]string{"mapRoles": roles},
				encode(presigned()))
			if status.Authenticated != (c.user != "") || status.User.Username != c.user || !slices.Equal(status.User.Groups, c.groups) {
				t.Errorf("got %+v", status)
			}
			if !status.Authenticated && status.Error == "" {
				t.Error("no reason is given")
			}
		})
	}
}

func TestSTSIsAskedAsSigned(t *testing.T) {
	f := &fakeMiniStack{caller: userARN, cluster: cluster("API", entryOf(userARN))}
	token := encode(presigned("http://"+gatewayHost, "https://sts.us-east-1.amazonaws.com"))
	if status := review(t, f, nil, token); !status.Authenticated {
		t.Fatal(status.Error)
	}
	if f.host != "sts.us-east-1.amazonaws.com" || f.header != "demo" || !strings.Contains(presigned(), f.query) {
		t.Errorf("STS was asked at host %q with header %q and query %q", f.host, f.header, f.query)
	}
}

func TestBadSignatureIsRefused(t *testing.T) {
	f := &fakeMiniStack{caller: userARN, cluster: cluster("API", entryOf(userARN))}
	status := review(t, f, nil, encode(presigned("00ff", "00fe")))
	if status.Authenticated || !strings.Contains(status.Error, "SignatureDoesNotMatch") {
		t.Errorf("got %+v", status)
	}
}

func TestUnreadableConfigMapIsAnError(t *testing.T) {
	f := &fakeMiniStack{caller: session, cluster: cluster("CONFIG_MAP")}
	status := review(t, f, map[string]string{"mapRoles": "no list"}, encode(presigned()))
	if status.Authenticated || !strings.Contains(status.Error, "decode mapRoles") {
		t.Errorf("got %+v", status)
	}
}
