package autoscaler

import (
	"fmt"
	"testing"
)

func TestRetarget(t *testing.T) {
	wanted := []string{"--nodes=1:3:a", "--nodes=0:2:b"}
	for name, c := range map[string]struct{ before, after line }{
		"auto-discovery in command": {
			line{Command: []string{"./ca", "--v=4", "--node-group-auto-discovery=asg:tag=x", "--balance-similar-node-groups"}},
			line{Command: []string{"./ca", "--v=4", "--nodes=1:3:a", "--nodes=0:2:b", "--balance-similar-node-groups"}}},
		"in args": {
			line{[]string{"./ca"}, []string{"--nodes=1:10:old", "--v=4", "--nodes=2:2:older"}},
			line{[]string{"./ca"}, []string{"--nodes=1:3:a", "--nodes=0:2:b", "--v=4"}}},
		"value as the next argument": {
			line{Args: []string{"--node-group-auto-discovery", "asg:tag=x", "--v=4"}},
			line{Args: []string{"--nodes=1:3:a", "--nodes=0:2:b", "--v=4"}}},
		"one dash": {
			line{Args: []string{"--v=4", "-nodes=1:2:x"}},
			line{Args: []string{"--v=4", "--nodes=1:3:a", "--nodes=0:2:b"}}},
		"no targets, flags in command": {
			line{Command: []string{"./ca", "--v=4"}},
			line{Command: []string{"./ca", "--v=4", "--nodes=1:3:a", "--nodes=0:2:b"}}},
		"similar names are left": {
			line{Args: []string{"--max-nodes-total=10", "--nodes=1:2:x"}},
			line{Args: []string{"--max-nodes-total=10", "--nodes=1:3:a", "--nodes=0:2:b"}}},
	} {
		if got := c.before.retarget(wanted); !got.equal(c.after) {
			t.Errorf("%s: %q, want %q", name, got, c.after)
		}
		if again := c.after.retarget(wanted); !again.equal(c.after) {
			t.Errorf("%s, again: %q", name, again)
		}
	}
}

func TestRetargetRepeatsNoFlag(t *testing.T) {
	before := line{Command: []string{"./ca", "--balance-similar-node-groups", "--nodes=1:2:x"}}
	got := before.retarget([]string{"--node-group-auto-discovery=asg", "--balance-similar-node-groups"})
	if want := "[./ca --balance-similar-node-groups --node-group-auto-discovery=asg]"; fmt.Sprint(got.Command) != want {
		t.Errorf("%v, want %v", got.Command, want)
	}
}

func TestRestored(t *testing.T) {
	kept := line{Command: []string{"./ca", "--node-group-auto-discovery=asg", "--v=4"}}
	ours := line{Command: []string{"./ca", "--nodes=1:3:a", "--v=4"}}
	if got := ours.restored(kept); !got.equal(kept) {
		t.Errorf("%q, want what was kept", got)
	}
	edited := line{Command: []string{"./ca", "--nodes=1:3:a", "--v=9", "--new"}}
	want := line{Command: []string{"./ca", "--node-group-auto-discovery=asg", "--v=9", "--new"}}
	if got := edited.restored(kept); !got.equal(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestInShell(t *testing.T) {
	if !(line{Command: []string{"sh", "-c", "./ca --v=4 --nodes=1:2:x"}}).inShell() {
		t.Error("a shell line was not seen")
	}
	if (line{Command: []string{"./ca", "--nodes=1:2:x", "--nodes", "1:2:x"}}).inShell() {
		t.Error("plain arguments were taken for a shell line")
	}
	if (line{Command: []string{"sh", "-c", "./ca --v=4 --expander=priority"}, Args: []string{"--nodes=1:2:x"}}).inShell() {
		t.Error("a shell line without target flags was taken for one with some")
	}
}
