package controller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// anew brings the rack to 1.10.0 with empty records, and returns them.
func (c *inCluster) anew(cloud *awsfake.Cloud) {
	c.Helper()
	c.store = &store.Store{DB: cloud.Table, Name: "sawhorse"}
	c.step.Checkpoints, c.step.Versions = c.store.Checkpoints(), c.store
	if err := c.store.SaveRecords(ctx, "demo", plan.Records{WasOn: true}); err != nil {
		c.Fatal(err)
	}
	stuck, blind := c.stuck, c.blind
	c.stuck, c.blind = nil, nil
	c.to("", "1.10.0", 0)
	if _, _, err := c.finish(); err != nil {
		c.Fatal(err)
	}
	c.stuck, c.blind = stuck, blind
	c.play()
	cloud.Forget()
}

// end returns the state after a change: what runs, and what the records say.
func (c *inCluster) end() string {
	c.Helper()
	record := c.record()
	at, err := (&run{Step: c.step, plan: c.plan}).attempt(ctx)
	if err != nil {
		c.Fatal(err)
	}
	return fmt.Sprint(c.installed(), " runs as ", c.version, ", before ", record.Before, ", back from ", record.RolledBack != nil,
		", attempt ", at != nil)
}

// goes calls the step until it is done or has brought the version before back.
func (c *inCluster) goes() error {
	c.Helper()
	for range 30 {
		progress, err := c.step.Run(ctx, c.plan, PartRelease)
		if err != nil && !strings.Contains(err.Error(), outcome.TookBack) {
			return err
		}
		if err != nil || progress.Wait == 0 {
			return nil
		}
		c.play()
		if at, _ := (&run{Step: c.step, plan: c.plan}).attempt(ctx); c.blind[c.version] && at != nil && at.Failure == "" {
			c.clock = c.clock.Add(changeTime)
		}
	}
	return errors.New("no end after 30 calls")
}

// A change has the same end if any write to the records fails, whether the version works or not.
func TestAChangeIsStoppedAtTheRecords(t *testing.T) {
	c := changing(t)
	for _, want := range []string{
		"1.12.1 runs as 1.12.1, before 1.10.0, back from false, attempt false",
		"1.10.0 runs as 1.10.0, before , back from true, attempt true",
	} {
		cloud := awsfake.New()
		c.anew(cloud)
		c.to("1.12.1", "1.10.0", 1)
		if err := c.goes(); err != nil || c.end() != want {
			t.Fatalf("%s, %v; want %s", c.end(), err, want)
		}
		writes := 0
		for n, name := range cloud.Made() {
			if strings.Contains(name, "DynamoDB.GetItem") {
				continue
			}
			if writes++; (writes-1)%stride() != 0 {
				continue
			}
			cloud := awsfake.New()
			c.anew(cloud)
			cloud.FailAt(n+1, awsfake.Throttling)
			c.to("1.12.1", "1.10.0", 1)
			if err := c.goes(); !errors.Is(err, awsfake.Throttling) {
				t.Errorf("call %d, %s, failed and the step said %v", n, name, err)
			}
			if err := c.goes(); err != nil || c.end() != want {
				t.Errorf("call %d, %s, failed, and the end is %s, %v; want %s", n, name, c.end(), err, want)
			}
		}
		if writes == 0 {
			t.Error("the change wrote no record")
		}
		c.blind["1.12.1"] = true
	}
}

// stopping is a transport whose API server fails after some writes of the way back.
type stopping struct {
	http.RoundTripper
	begun func() bool
	left  *int
}

// WrappedRoundTripper lets client-go reach the transport, to close its idle connections.
func (s stopping) WrappedRoundTripper() http.RoundTripper { return s.RoundTripper }

func (s stopping) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && s.begun() {
		if *s.left--; *s.left < 0 {
			return nil, &outcome.NotYet{Reason: outcome.Unready, Note: "stopped"}
		}
	}
	return s.RoundTripper.RoundTrip(request)
}

// A pass is stopped between two writes to the cluster, and a new one begins with the plan that validate makes then: for the
// version in force once the failure is recorded, else for the same version. It never tries a version again that failed.
func TestAPassIsStoppedWhileAVersionComesBack(t *testing.T) {
	c := changing(t)
	steady := c.step.Connect
	c.blind["1.12.1"] = true
	begun := func() bool { return c.record().RolledBack != nil }
	for _, writes := range []int{0, 2, 9} { // of the way back
		c.step.Connect = steady
		c.anew(awsfake.New())
		c.to("1.12.1", "1.10.0", 1)
		c.run(PartRelease, "upgraded from 1.10.0 release karpenter 1.12.1")
		c.play()
		c.run(PartRelease)
		c.play()
		c.clock = c.clock.Add(changeTime)
		config := rest.CopyConfig(c.Config)
		left := writes
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return stopping{next, begun, &left} })
		c.step.Connect = c.as(config).Connect
		if _, err := c.step.Run(ctx, c.plan, PartRelease); !outcome.IsNotYet(err, outcome.Unready) {
			t.Fatalf("%d writes: %v", writes, err)
		}
		if failed := c.record().RolledBack; failed == nil || failed.Version != "1.12.1" || failed.Write != 1 {
			t.Fatalf("%d writes: the way back has begun and the record is %+v", writes, c.record())
		}
		c.step.Connect = steady
		c.to("", "1.10.0", 1)
		if _, _, err := c.finish(); err != nil {
			t.Fatal(err)
		}
		if got := c.end(); got != "1.10.0 runs as 1.10.0, before , back from true, attempt false" {
			t.Errorf("%d writes: the end is %s", writes, got)
		}
	}
}
