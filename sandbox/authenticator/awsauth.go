package authenticator

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// mapping is an element of mapRoles or mapUsers.
type mapping struct {
	Role     string   `json:"rolearn"`
	User     string   `json:"userarn"`
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

// fromConfigMap looks the caller up in kube-system/aws-auth. It returns nil if the caller is not there. Roles are
// compared without regard to case and without their path, which such an entry must not have.
func (a *Authenticator) fromConfigMap(ctx context.Context, c caller) (*user, error) {
	data, err := a.config.AWSAuth(ctx)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap kube-system/aws-auth: get: %w", err)
	}
	for _, key := range []string{"mapRoles", "mapUsers"} {
		var mappings []mapping
		if err := yaml.Unmarshal([]byte(data[key]), &mappings); err != nil {
			return nil, fmt.Errorf("ConfigMap kube-system/aws-auth: decode %s: %w", key, err)
		}
		for _, m := range mappings {
			if (key == "mapRoles" && strings.EqualFold(m.Role, c.canonical)) ||
				(key == "mapUsers" && strings.EqualFold(m.User, c.canonical)) {
				if m.Username == "" {
					m.Username = defaultName(c)
				}
				return &user{expand(m.Username, c), m.Groups}, nil
			}
		}
	}
	return nil, nil
}
