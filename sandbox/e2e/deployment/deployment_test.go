// Package deployment plays the end-to-end scripts about the stack itself: how it is accepted on an account, upgraded and removed: make deployment,
// or by name as make e2e NAME=Upgrade.
package deployment

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-deployment")

func TestMain(m *testing.M) { sandbox.Main(m) }

// What is for a real account works. It comes first: it wants a rack that there is not, and a cluster without Karpenter.
func TestAcceptance(t *testing.T) {
	sandbox.Play(t, func(s *story.Teller) { story.Acceptance(s, "../../../tools/acceptance.sh") })
}

// The stack of an earlier commit is upgraded while passes run.
func TestUpgrade(t *testing.T) {
	command := exec.Command("../../earlier.sh")
	command.Stderr = os.Stderr
	folder, err := command.Output()
	if err != nil {
		t.Fatalf("sandbox/earlier.sh: %v", err)
	}
	sandbox.Play(t, story.Off)
	sandbox.Play(t, func(s *story.Teller) { story.Upgrade(s, strings.TrimSpace(string(folder))) })
}

// The stack is removed while Karpenter is on, deployed again, and removed for good. It comes last: there is no stack then.
func TestRemoving(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Removing)
}
