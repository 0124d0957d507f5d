// Package awsfake is as much of AWS as the steps call, in memory: services with state, that refuse what AWS refuses. Tests
// look at the state and at the calls, and let any call fail. Only tests import it.
package awsfake

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"
)

// Account, Region and Cluster are where everything is.
const (
	Account    = "123456789012"
	Region     = "eu-central-1"
	ClusterARN = "arn:aws:eks:" + Region + ":" + Account + ":cluster/demo"
)

// Cloud is one account and region.
type Cloud struct {
	*Calls
	IAM    *IAM
	EKS    *EKS
	SQS    *SQS
	Events *Events
	EC2    *EC2
	SSM    *SSM
	Table  *Table
}

// New is an account with nothing in it but the EKS cluster demo, in access mode CONFIG_MAP.
func New() *Cloud {
	calls := &Calls{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	roles := newIAM(calls)
	return &Cloud{
		Calls: calls, IAM: roles, EKS: newEKS(calls, roles), SQS: newSQS(calls), Events: newEvents(calls),
		EC2: newEC2(calls), SSM: newSSM(calls), Table: newTable(calls),
	}
}

// Calls are the calls so far, and the clock.
type Calls struct {
	mutex  sync.Mutex
	all    []string
	failAt int
	err    error
	now    time.Time
	// Lag is how far AWS is behind its own writes.
	Lag Lag
}

// FailAt lets the n-th call from now on fail with the error, 1 being the next; 0 lets none.
func (c *Calls) FailAt(n int, err error) {
	c.failAt, c.err = 0, err
	if n > 0 {
		c.failAt = len(c.all) + n
	}
}

// Failed tells whether the call that was to fail has come.
func (c *Calls) Failed() bool { return c.failAt > 0 && len(c.all) >= c.failAt }

// Forget starts the list of calls anew.
func (c *Calls) Forget() { c.all, c.failAt = nil, 0 }

// Made are all calls since Forget: "IAM.CreateRole demo-karpenter".
func (c *Calls) Made() []string { return slices.Clone(c.all) }

// Writes are the calls that change something.
func (c *Calls) Writes() []string {
	return slices.DeleteFunc(c.Made(), func(call string) bool {
		_, name, _ := strings.Cut(call, ".")
		for _, reading := range []string{"Get", "List", "Describe", "Query", "Scan"} {
			if strings.HasPrefix(name, reading) {
				return true
			}
		}
		return false
	})
}

// Now is the clock. It goes on by a second with each call.
func (c *Calls) Now() time.Time { return c.now }

// Pass lets time pass.
func (c *Calls) Pass(d time.Duration) { c.now = c.now.Add(d) }

// Call counts a call of something else that a step calls, and that may fail like one of AWS: the cluster's API server.
func (c *Calls) Call(name, subject string) error { return c.call(name, subject) }

func (c *Calls) call(name, subject string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(time.Second)
	c.all = append(c.all, strings.TrimSpace(name+" "+subject))
	if c.failAt == len(c.all) {
		return c.err
	}
	return nil
}

// refuse is an error of a code that the SDK has no type for.
func refuse(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// polling is the time between two calls of a step that waits.
const polling = 20 * time.Second

// Throttling is what AWS says to a caller that is too fast.
var Throttling = refuse("ThrottlingException", "Rate exceeded")

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
