// Package process starts the sandbox's child processes, notices when one ends by itself, and stops them all in the
// reverse order of their start, waiting for each to exit.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Spec describes one child. Its output goes to {Name}.log in the group's log folder.
type Spec struct {
	Name string
	Path string
	Args []string
	Env  []string // the whole environment: nothing is inherited
	Dir  string
}

// Group is a set of children that live and end together.
type Group struct {
	logs  string
	grace time.Duration
	died  chan error

	mu       sync.Mutex
	stopping bool
	children []*child
}

type child struct {
	name string
	cmd  *exec.Cmd
	gone chan struct{}
}

// NewGroup returns an empty group whose children write into the folder logs and have the time grace to end when asked.
func NewGroup(logs string, grace time.Duration) *Group {
	return &Group{logs: logs, grace: grace, died: make(chan error, 1)}
}

// Died delivers the reason when a child has ended although nobody asked it to. Only the first one is told: the others
// follow from it.
func (g *Group) Died() <-chan error { return g.died }

// Start runs a child.
func (g *Group) Start(spec Spec) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return fmt.Errorf("%s: start: %w", spec.Name, errors.New("the sandbox is stopping"))
	}
	log, err := os.Create(g.logFile(spec.Name))
	if err != nil {
		return fmt.Errorf("%s: create log: %w", spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = spec.Env, spec.Dir, log, log
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: start: %w", spec.Name, err)
	}
	c := &child{name: spec.Name, cmd: cmd, gone: make(chan struct{})}
	g.children = append(g.children, c)
	go g.watch(c)
	return nil
}

func (g *Group) logFile(name string) string { return filepath.Join(g.logs, name+".log") }

// watch waits for the child's end, sweeps up what it started itself, and reports the end if it was not asked for.
func (g *Group) watch(c *child) {
	err := c.cmd.Wait()
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	close(c.gone)
	g.mu.Lock()
	asked := g.stopping
	g.mu.Unlock()
	if asked {
		return
	}
	reason := "exit status 0"
	if err != nil {
		reason = err.Error()
	}
	select {
	case g.died <- fmt.Errorf("%s: ended by itself: %s (see %s)", c.name, reason, g.logFile(c.name)):
	default:
	}
}

// Stop ends the children, the last one started first, and returns when all have exited. A child that does not end
// within the grace time is killed, with everything in its process group.
func (g *Group) Stop() {
	g.mu.Lock()
	g.stopping = true
	children := g.children
	g.mu.Unlock()
	for i := len(children) - 1; i >= 0; i-- {
		children[i].stop(g.grace)
	}
}

func (c *child) stop(grace time.Duration) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.gone:
	case <-timer.C:
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.gone
	}
}
