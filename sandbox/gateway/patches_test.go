package gateway_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// patches runs the wrapper's patches in a MiniStack that the Python statements have changed, and returns what it prints.
func patches(t *testing.T, statements string, then string) string {
	t.Helper()
	command := exec.Command("../../.cache/ministack/bin/python", "-B", "-c", statements+"\nimport wrapper, patches\n"+then)
	command.Env = append(os.Environ(), "PYTHONPATH=../ministack", "AWS_ENDPOINT_URL=http://127.0.0.1:1", "GATEWAY_PORT=1")
	out, _ := command.CombinedOutput() // its exit status is not 0 if a patch does not fit
	return string(out)
}

// A MiniStack in which a function has been renamed, one has another parameter, and one that a file calls has lost one.
func TestTheStartNamesWhatANewMiniStackBroke(t *testing.T) {
	const changed = `
from ministack.services import eks, iam
del eks._create_access_entry, eks._access_policies
eks._create_nodegroup = lambda cluster, body, region: None
iam._future = lambda: None
`
	out := patches(t, changed, "patches.install(wrapper.MODULES)\nprint('started')")
	for _, wanted := range []string{
		"ministack.services.eks._create_access_entry is missing; access.py replaces it",
		"ministack.services.eks._create_nodegroup takes (cluster, body, region), its patch in updates.py (cluster, body)",
		"ministack.services.iam._future takes (); pod_identity.py:",
		"ministack.services.eks._access_policies is missing; sandbox_api.py:",
	} {
		if !strings.Contains(out, wanted) {
			t.Errorf("%q is not in:\n%s", wanted, out)
		}
	}
	if strings.Contains(out, "started") || strings.Contains(out, "_delete_access_entry") {
		t.Errorf("it starts, or names what is not broken:\n%s", out)
	}
	if out := patches(t, "", "patches.install(wrapper.MODULES)\nprint('started')"); !strings.Contains(out, "started") {
		t.Errorf("the MiniStack that is installed: %s", out)
	}
}
