package story

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// A moment with fewer pods counts, though it was over before anybody looked, and that of an app without any pod, whose Deployment
// has no such field. A recording that ended by itself may have missed such a moment: it fails the check.
func TestARecordingHasMomentsThatAreOver(t *testing.T) {
	web, api := app{name: "web", replicas: 3}, app{name: "api", replicas: 2}
	const was = "echo web available=3; echo api available=2; echo web available=1; echo web available=3; "
	for _, c := range []struct {
		kubectl string
		missing int
		fails   string
	}{
		{was + "echo other available=; echo last; sleep 60", 2, ""},
		{was + "echo web available=; echo web available=3; echo last; sleep 60", 3, ""},
		{was + "echo last", 2, "ended by itself"},
	} {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/bash\n"+c.kubectl+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s := Run(t.Context(), user.Environment{"PATH=" + bin + ":/usr/bin:/bin"}, &strings.Builder{}, false, func(s *Script) {
			a := s.recordAvailable(web, api)
			s.Await("the last line", func() string {
				found := a.seen()
				return found[len(found)-1].What
			}, "last", time.Minute)
			if c.fails != "" {
				s.Await("its end", func() string { a.seen(); return "" }, "it fails", time.Minute)
			}
			s.Equal("missing", a.missing(), c.missing)
			a.stop()
		})
		if failed := strings.Join(s.Failures(), "; "); !strings.Contains(failed, c.fails) || failed != "" && c.fails == "" {
			t.Errorf("%s: %q, want %q", c.kubectl, failed, c.fails)
		}
	}
}
