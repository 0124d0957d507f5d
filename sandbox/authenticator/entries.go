package authenticator

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
)

// Groups for callers whose access entry has an access policy for the whole cluster.
const (
	ClusterAdminGroup = "eks:cluster-admin"
	AdminViewGroup    = "eks:admin-view"
)

// policyGroups are the access policies that the sandbox supports.
var policyGroups = map[string]string{
	"arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy": ClusterAdminGroup,
	"arn:aws:eks::aws:cluster-access-policy/AmazonEKSAdminViewPolicy":    AdminViewGroup,
}

// access is the cluster's authentication mode and its access entries, as MiniStack's wrapper returns them. EKS's own
// API does not return the role id that an entry is bound to.
type access struct {
	Mode    string  `json:"authenticationMode"`
	Entries []entry `json:"accessEntries"`
}

type entry struct {
	Principal string   `json:"principalArn"`
	Type      string   `json:"type"`
	Username  string   `json:"username"`
	Groups    []string `json:"kubernetesGroups"`
	// RoleID is the unique id of the role at the time the entry was created. CurrentRoleID is the id of the role with
	// this ARN now; empty if there is none.
	RoleID        string `json:"roleId"`
	CurrentRoleID string `json:"currentRoleId"`
	Policies      []struct {
		ARN   string `json:"policyArn"`
		Scope struct {
			Type string `json:"type"`
		} `json:"accessScope"`
	} `json:"policies"`
}

// user is a caller's identity in Kubernetes.
type user struct {
	name   string
	groups []string
}

func (a *Authenticator) access(ctx context.Context) (found access, err error) {
	target := a.config.MiniStack.JoinPath("/_sandbox/access-entries")
	target.RawQuery = url.Values{"cluster": {a.config.Cluster}}.Encode()
	if err := ask.JSON(ctx, http.MethodGet, target.String(), nil, &found); err != nil {
		return found, fmt.Errorf("access entries: %w", err)
	}
	return found, nil
}

// fromEntries looks the caller up in the access entries. It returns nil if there is no entry for the caller.
func fromEntries(entries []entry, c caller) (*user, error) {
	for _, e := range entries {
		if !e.names(c) {
			continue
		}
		if c.role != "" && (e.CurrentRoleID == "" || e.RoleID != e.CurrentRoleID) {
			return nil, fmt.Errorf("access entry %s: it is bound to an earlier role of that name; "+
				"delete the entry and make it again", e.Principal)
		}
		return e.user(c), nil
	}
	return nil, nil
}

// names reports whether the entry is for the caller. A session's ARN lacks its role's path, which an entry has. Role
// names are unique in an account, so names are compared.
func (e entry) names(c caller) bool {
	if c.role == "" {
		return e.Principal == c.canonical
	}
	account, path, ok := strings.Cut(e.Principal, ":role/")
	wanted, _, _ := strings.Cut(c.canonical, ":role/")
	return ok && account == wanted && path[strings.LastIndex(path, "/")+1:] == c.role
}

func (e entry) user(c caller) *user {
	u := &user{name: e.Username, groups: append([]string{}, e.Groups...)}
	if u.name == "" {
		u.name = defaultName(c)
	}
	u.name = expand(u.name, c)
	for _, policy := range e.Policies {
		if group := policyGroups[policy.ARN]; group != "" && policy.Scope.Type == "cluster" {
			u.groups = append(u.groups, group)
		}
	}
	return u
}

// defaultName returns the user name that EKS uses if the entry has none.
func defaultName(c caller) string {
	if c.role == "" {
		return c.arn
	}
	return strings.TrimSuffix(c.arn, c.session) + "{{SessionName}}"
}

// expand replaces the variables in a user name. EKS replaces an @ in a session's name, which may look
// like a mail address.
func expand(name string, c caller) string {
	return strings.NewReplacer(
		"{{AccountID}}", c.account,
		"{{SessionName}}", strings.ReplaceAll(c.session, "@", "-"),
		"{{SessionNameRaw}}", c.session,
		"{{AccessKeyID}}", c.accessKey,
		"{{EC2PrivateDNSName}}", c.session,
	).Replace(name)
}
