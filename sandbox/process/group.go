// Package process starts the sandbox's child processes, notices when one ends by itself, and stops them all in the
// reverse order of their start, waiting for each to exit.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
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

// Group is a set of children that start and end together.
type Group struct {
	logs  string
	grace time.Duration
	died  chan error

	mu       sync.Mutex
	stopping bool
	children []*child
}

type child struct {
	spec  Spec
	cmd   *exec.Cmd
	gone  chan struct{}
	asked atomic.Bool // its end was requested
}

// NewGroup returns an empty group. Its children write their logs into the folder logs, and have the time grace to end
// when asked.
func NewGroup(logs string, grace time.Duration) *Group {
	return &Group{logs: logs, grace: grace, died: make(chan error, 1)}
}

// Died delivers the reason when a child has ended without a request. Only the first such end is delivered, because the
// others follow from it.
func (g *Group) Died() <-chan error { return g.died }

// Start starts a child.
func (g *Group) Start(spec Spec) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return fmt.Errorf("%s: start: %w", spec.Name, errors.New("the sandbox is stopping"))
	}
	c, err := g.run(spec, os.O_TRUNC)
	if err != nil {
		return err
	}
	g.children = append(g.children, c)
	return nil
}

// Restart ends a child and starts it again with the same Spec. Its log is continued.
func (g *Group) Restart(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.children, func(c *child) bool { return c.spec.Name == name })
	if i < 0 || g.stopping {
		return fmt.Errorf("%s: restart: %w", name, errors.New("there is no such child, or the sandbox is stopping"))
	}
	g.children[i].stop(g.grace)
	c, err := g.run(g.children[i].spec, os.O_APPEND)
	if err != nil {
		return err
	}
	g.children[i] = c
	return nil
}

// run starts a child. how is os.O_TRUNC for a new log or os.O_APPEND to continue it.
func (g *Group) run(spec Spec, how int) (*child, error) {
	log, err := os.OpenFile(g.logFile(spec.Name), os.O_CREATE|os.O_WRONLY|how, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: create log: %w", spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = spec.Env, spec.Dir, log, log
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	// A child is in a process group of its own: its own children can then be stopped with it, and a Ctrl-C on the terminal
	// reaches only the supervisor. The kernel kills it when the supervisor is killed: it ties Pdeathsig to the thread that
	// started the child. Go ends a thread only when a goroutine locked to it returns, and no goroutine here is locked.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: start: %w", spec.Name, err)
	}
	c := &child{spec: spec, cmd: cmd, gone: make(chan struct{})}
	go g.watch(c)
	return c, nil
}

func (g *Group) logFile(name string) string { return filepath.Join(g.logs, name+".log") }

// watch waits for the child's end, kills its remaining process group, and reports the end if it was not requested.
func (g *Group) watch(c *child) {
	err := c.cmd.Wait()
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	close(c.gone)
	if c.asked.Load() {
		return
	}
	reason := "exit status 0"
	if err != nil {
		reason = err.Error()
	}
	select {
	case g.died <- fmt.Errorf("%s: ended by itself: %s (see %s)", c.spec.Name, reason, g.logFile(c.spec.Name)):
	default:
	}
}

// Stop ends the children in the reverse order of their start, and returns when all have exited. A child that does not
// end within the grace time is killed, with everything in its process group.
func (g *Group) Stop() {
	g.mu.Lock()
	g.stopping = true
	children := g.children
	for _, c := range children {
		c.asked.Store(true)
	}
	g.mu.Unlock()
	for i := len(children) - 1; i >= 0; i-- {
		children[i].stop(g.grace)
	}
}

func (c *child) stop(grace time.Duration) {
	c.asked.Store(true)
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
