// Package stage gives each end-to-end script a sandbox.
package stage

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/attached"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// Running is the name of an environment variable. If it is set, the scripts use a sandbox that already runs: the value
// is the path of its environment file, as `make sandbox` prints it.
const Running = "SANDBOX_ENV"

// Alone is the name of another. If it is "yes", each script gets a new sandbox, so that it shows that it needs nothing that
// another one leaves behind (make alone).
const Alone = "SANDBOX_ALONE"

// Trait is a property of a script that decides when it runs, and in which sandbox.
type Trait int

const (
	// Long is a script of more than two minutes. Long scripts run before short ones, so that none is left over at the end.
	Long Trait = iota
	// Untouched is a script that needs a new sandbox.
	Untouched
	// Spoils is a script that leaves a sandbox in which no other script can run.
	Spoils
)

// Pool is the sandboxes of a test binary. `go test -parallel N` sets how many there are at once. A sandbox starts when a script
// needs one, and then takes the scripts that follow, until one fails or none waits any more. All end with the binary, even if it
// crashes.
type Pool struct {
	root, state string
	claim       func() error // claims the folder, once
	most        int

	mutex   sync.Mutex
	changed sync.Cond
	waiting []*turn
	folder  *os.File
	idle    []*sandbox
	running int // scripts
	started int // sandboxes, since the start of the binary
}

// turn is a script that waits for a sandbox.
type turn struct{ traits []Trait }

// sandbox is a sandbox that runs.
type sandbox struct {
	number      int
	environment user.Environment
	end         func() error
}

// New returns a pool without sandboxes. root is the checkout. Sandbox number N has its state in the folder .cache/NAME/N.
func New(root, name string) *Pool {
	p := &Pool{root: root, state: filepath.Join(root, ".cache", name)}
	p.claim = sync.OnceValue(p.empty)
	p.changed.L = &p.mutex
	return p
}

// empty removes what an earlier run has left in the pool's folder, and makes this binary the only one that uses it for as long
// as it runs.
func (p *Pool) empty() error {
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return err
	}
	folder, err := os.Open(p.state) // open until the process ends, and with it the lock
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s: another run of these scripts uses it", p.state)
	}
	p.folder = folder
	left, err := folder.Readdirnames(0)
	for _, name := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.state, name)))
	}
	return err
}

// Main runs the tests and then ends the sandboxes.
func (p *Pool) Main(m *testing.M) {
	flag.Parse()
	code, err := 1, p.prepare()
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, p.endIdle()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// endIdle ends the sandboxes that are idle, at once, because each takes seconds.
func (p *Pool) endIdle() error {
	failed := make([]error, len(p.idle))
	var ending sync.WaitGroup
	for i, sandbox := range p.idle {
		ending.Go(func() { failed[i] = sandbox.end() })
	}
	ending.Wait()
	return errors.Join(failed...)
}

// prepare takes the number of sandboxes from -parallel, and lets Go start all tests, since the pool decides which one runs.
func (p *Pool) prepare() (err error) {
	if os.Getenv(Running) != "" {
		p.most = 1
	} else {
		p.most, err = strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	}
	return errors.Join(err, flag.Set("test.parallel", "1000"))
}

// Take waits until it is the test's turn (next), and returns its sandbox. Otherwise the order is that of the tests.
func (p *Pool) Take(t *testing.T, traits ...Trait) *Stage {
	t.Helper()
	turn := &turn{traits}
	p.mutex.Lock()
	p.waiting = append(p.waiting, turn) // before the test is parallel, so that the tests are in order
	p.mutex.Unlock()
	t.Parallel()
	sandbox, err := p.acquire(turn)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	t.Cleanup(func() {
		t.Logf("%v in sandbox %d", time.Since(began).Round(time.Second), sandbox.number)
		if err := p.release(sandbox, t.Failed() || slices.Contains(traits, Spoils)); err != nil {
			t.Error(err)
		}
	})
	return &Stage{t, sandbox.environment}
}

// acquire waits until the turn is the next one and fewer scripts run than there may be sandboxes. It returns one that is idle,
// or a new one.
func (p *Pool) acquire(next *turn) (*sandbox, error) {
	p.mutex.Lock()
	for p.running == p.most || p.next() != next {
		p.changed.Wait()
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(t *turn) bool { return t == next })
	p.running++
	var chosen *sandbox
	if last := len(p.idle) - 1; last >= 0 {
		chosen, p.idle = p.idle[last], p.idle[:last]
	}
	p.mutex.Unlock()
	p.changed.Broadcast()
	var err error
	if chosen != nil && slices.Contains(next.traits, Untouched) {
		chosen, err = nil, chosen.end()
	}
	if chosen == nil && err == nil {
		chosen, err = p.start()
	}
	if err != nil {
		return nil, errors.Join(err, p.release(nil, true))
	}
	return chosen, nil
}

// next returns the script that waits for the next sandbox: first those that need a new one, as all are at the beginning, last those
// after which it ends, and of the same kind the long ones first.
func (p *Pool) next() *turn {
	return slices.MinFunc(p.waiting, func(a, b *turn) int { return cmp.Compare(a.rank(), b.rank()) })
}

func (t *turn) rank() (rank int) {
	for _, trait := range t.traits {
		rank += map[Trait]int{Long: -1, Untouched: -10, Spoils: 4}[trait]
	}
	return rank
}

// start starts a sandbox, or uses the one of Running.
func (p *Pool) start() (*sandbox, error) {
	if path := os.Getenv(Running); path != "" {
		environment, err := user.Read(context.Background(), path)
		return &sandbox{environment: environment, end: func() error { return nil }}, err
	}
	if err := p.claim(); err != nil {
		return nil, err
	}
	p.mutex.Lock()
	p.started++
	number := p.started
	p.mutex.Unlock()
	environment, end, err := attached.Start(context.Background(), p.root, filepath.Join(p.state, strconv.Itoa(number)))
	if err != nil {
		return nil, err
	}
	return &sandbox{number, environment, end}, nil
}

// release ends a script. Its sandbox waits for the next one, unless it is used up. If there is no next one it ends, and leaves the
// machine to the scripts that still run: all have waited before the first began (Take).
func (p *Pool) release(used *sandbox, usedUp bool) (err error) {
	p.mutex.Lock()
	last := len(p.waiting) == 0
	p.mutex.Unlock()
	if used != nil && (usedUp || last || os.Getenv(Alone) == "yes") {
		used, err = nil, used.end()
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if used != nil {
		p.idle = append(p.idle, used)
	}
	p.running--
	p.changed.Broadcast()
	return err
}
