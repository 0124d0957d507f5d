package process

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// shell starts a shell script as a child.
func shell(t *testing.T, g *Group, name, script string) {
	t.Helper()
	if err := g.Start(Spec{
		Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")},
	}); err != nil {
		t.Fatal(err)
	}
}

// await polls until the condition holds. The limit only bounds a test that would hang.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("%s: did not happen", what)
}

func content(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

func TestStopRunsBackwardAndWaits(t *testing.T) {
	dir := t.TempDir()
	order := filepath.Join(dir, "order")
	g := NewGroup(dir, 20*time.Second)
	for _, name := range []string{"first", "second"} {
		shell(t, g, name, "trap 'echo "+name+" >> "+order+"; exit 0' TERM; echo up; while :; do sleep 0.01; done")
		await(t, name+" is up", func() bool { return content(filepath.Join(dir, name+".log")) == "up\n" })
	}
	g.Stop()
	if got := content(order); got != "second\nfirst\n" {
		t.Errorf("ended in the order %q, want second, first", got)
	}
	select {
	case err := <-g.Died():
		t.Errorf("an asked-for end was reported: %v", err)
	default:
	}
}

func TestStopKillsWhatDoesNotEndWithItsChildren(t *testing.T) {
	dir := t.TempDir()
	g := NewGroup(dir, time.Millisecond)
	shell(t, g, "deaf", "trap '' TERM; sleep 600 & echo $!; wait; wait")
	log := filepath.Join(dir, "deaf.log")
	await(t, "the grandchild's pid", func() bool { return strings.HasSuffix(content(log), "\n") })
	pid, err := strconv.Atoi(strings.TrimSpace(content(log)))
	if err != nil {
		t.Fatal(err)
	}
	g.Stop()
	// An orphan that has not been reaped yet, with state Z, counts as ended.
	await(t, "the grandchild's end", func() bool {
		return syscall.Kill(pid, 0) != nil || strings.Contains(content("/proc/"+strconv.Itoa(pid)+"/stat"), ") Z ")
	})
}

func TestUnexpectedEndIsReported(t *testing.T) {
	g := NewGroup(t.TempDir(), time.Second)
	shell(t, g, "weak", "exit 3")
	err := <-g.Died()
	for _, want := range []string{"weak", "exit status 3", "weak.log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	g.Stop()
	if err := g.Start(Spec{Name: "late", Path: "/bin/sh"}); err == nil {
		t.Error("a child was started after the stop")
	}
}

func TestNothingIsInherited(t *testing.T) {
	t.Setenv("SANDBOX_SECRET", "leak")
	dir := t.TempDir()
	g := NewGroup(dir, time.Second)
	if err := g.Start(Spec{Name: "bare", Path: "/bin/sh", Args: []string{"-c", "echo [$SANDBOX_SECRET]"}}); err != nil {
		t.Fatal(err)
	}
	<-g.Died()
	if got := content(filepath.Join(dir, "bare.log")); got != "[]\n" {
		t.Errorf("the child saw %q", got)
	}
}

// No port is returned twice when many callers request ports concurrently and use them later.
func TestFreePorts(t *testing.T) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var ports []int
	for range 40 {
		all.Go(func() {
			some, giveBack, err := FreePorts(50)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(giveBack)
			mu.Lock()
			defer mu.Unlock()
			ports = append(ports, some...)
		})
	}
	all.Wait()
	seen := map[int]bool{}
	for _, port := range ports {
		if seen[port] {
			t.Errorf("port %d twice", port)
		}
		seen[port] = true
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Errorf("port %d: %v", port, err)
			continue
		}
		listener.Close()
	}
}

// A restart is not reported as an unexpected end, and Stop ends the restarted child.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	g := NewGroup(dir, 20*time.Second)
	shell(t, g, "server", "trap 'echo end; exit 0' TERM; echo up; while :; do sleep 0.01; done")
	log := filepath.Join(dir, "server.log")
	await(t, "it is up", func() bool { return content(log) == "up\n" })
	if err := g.Restart("server"); err != nil {
		t.Fatal(err)
	}
	await(t, "it is up again", func() bool { return content(log) == "up\nend\nup\n" })
	if err := g.Restart("nobody"); err == nil {
		t.Error("what does not exist was started again")
	}
	g.Stop()
	if got := content(log); got != "up\nend\nup\nend\n" {
		t.Errorf("%q", got)
	}
	select {
	case err := <-g.Died():
		t.Errorf("an asked-for end was reported: %v", err)
	default:
	}
}
