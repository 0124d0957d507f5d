// Package awsfake fakes the AWS services that the steps call, in memory. They have state and refuse what AWS refuses.
// Tests check the state and the calls, and can make any call fail. Only tests import it.
package awsfake

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"
)

// Account and Region are the account and region of all resources. ClusterARN is the ARN of the cluster demo.
const (
	Account    = "123456789012"
	Region     = "eu-central-1"
	ClusterARN = "arn:aws:eks:" + Region + ":" + Account + ":cluster/demo"
)

// Cloud is one account in one region.
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

// New returns an account that contains only the EKS cluster demo, in access mode CONFIG_MAP.
func New() *Cloud {
	calls := &Calls{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	roles := newIAM(calls)
	return &Cloud{
		Calls: calls, IAM: roles, EKS: newEKS(calls, roles), SQS: newSQS(calls), Events: newEvents(calls),
		EC2: newEC2(calls), SSM: newSSM(calls), Table: newTable(calls),
	}
}

// Calls records the calls so far and holds the clock.
type Calls struct {
	mutex  sync.Mutex
	all    []string
	failAt int
	err    error
	now    time.Time
	// Lag is how far AWS lags behind its own writes.
	Lag Lag
}

// FailAt makes the n-th call from now on fail with the error. 1 is the next call, 0 none.
func (c *Calls) FailAt(n int, err error) {
	c.failAt, c.err = 0, err
	if n > 0 {
		c.failAt = len(c.all) + n
	}
}

// Failed reports whether the call that was to fail has been made.
func (c *Calls) Failed() bool { return c.failAt > 0 && len(c.all) >= c.failAt }

// Forget clears the list of calls.
func (c *Calls) Forget() { c.all, c.failAt = nil, 0 }

// Made returns all calls since Forget: "IAM.CreateRole demo-karpenter".
func (c *Calls) Made() []string { return slices.Clone(c.all) }

// Writes returns the calls that change something.
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

// Now returns the clock's time. Each call advances the clock by a second.
func (c *Calls) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

// Pass advances the clock.
func (c *Calls) Pass(d time.Duration) { c.now = c.now.Add(d) }

// Call records a call to something other than AWS that may fail like a call to AWS, such as the cluster's API server.
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

// refuse returns an error with a code for which the SDK has no type.
func refuse(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// polling is the time between two calls of a waiting step.
const polling = 20 * time.Second

// Throttling is AWS's error for a caller that sends too many requests.
var Throttling = refuse("ThrottlingException", "Rate exceeded")

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
