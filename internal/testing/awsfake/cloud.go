// Package awsfake fakes the AWS services that the steps call, in memory. They have state and refuse what AWS refuses.
// Tests check the state and the calls, and can make any call fail. Only tests import it.
package awsfake

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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
	States *StepFunctions
	Lambda *Lambda
	S3     *S3

	// Unserved has the requests over HTTP that were denied because the fake does not serve them.
	Unserved []string
	serving  sync.Mutex
}

// New returns an account that contains only the EKS cluster demo, in access mode CONFIG_MAP.
func New() *Cloud {
	calls := &Calls{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	roles := newIAM(calls)
	return &Cloud{
		Calls: calls, IAM: roles, EKS: newEKS(calls, roles), SQS: newSQS(calls), Events: newEvents(calls),
		EC2: newEC2(calls), SSM: newSSM(calls), Table: newTable(calls),
		States: &StepFunctions{Calls: calls}, Lambda: &Lambda{Calls: calls}, S3: &S3{Calls: calls, Objects: map[string]string{}},
	}
}

// Calls records the calls so far and holds the clock.
type Calls struct {
	mutex  sync.Mutex
	all    []string
	failAt int
	err    error
	now    time.Time
	// random draws age, which is how old the state is that the reads of the last call show; below zero until it is drawn.
	// The pages of one list come from one replica.
	random *rand.Rand
	age    time.Duration
	// Lag is how far AWS lags behind its own writes.
	Lag Lag
	// Refused is the error of every call that writes, as of a client that refuses to write; nil lets them through.
	Refused error
	// Before, if not nil, is called for each call, as in Made, before it takes effect. Its error is the call's.
	Before func(call string) error
}

// Fail makes every call of that name fail: "IAM.DeleteRole".
func (c *Calls) Fail(name string, err error) {
	c.Before = func(call string) error {
		if of, _, _ := strings.Cut(call, " "); of == name {
			return err
		}
		return nil
	}
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
	return slices.DeleteFunc(c.Made(), reads)
}

// Changes returns the calls that change something, without those that record what is written (package resource).
func (c *Calls) Changes() []string {
	return slices.DeleteFunc(c.Writes(), func(call string) bool {
		return strings.HasPrefix(call, "DynamoDB.") && strings.Contains(call, " written#")
	})
}

// reads reports whether a call only reads: "IAM.GetRole".
func reads(call string) bool {
	_, name, _ := strings.Cut(call, ".")
	for _, reading := range []string{"Get", "List", "Describe", "Query", "Scan"} {
		if strings.HasPrefix(name, reading) {
			return true
		}
	}
	return false
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
	if c.Refused != nil && !reads(name) {
		return c.Refused
	}
	call := strings.TrimSpace(name + " " + subject)
	if err := c.record(call); err != nil || c.Before == nil {
		return err
	}
	return c.Before(call)
}

// record adds a call, and returns the error if it is the one that is to fail.
func (c *Calls) record(call string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(time.Second)
	if len(c.all) == 0 || c.all[len(c.all)-1] != call {
		c.age = -1
	}
	c.all = append(c.all, call)
	if c.failAt == len(c.all) {
		return c.err
	}
	return nil
}

// gone is a deleted resource, as it was, with the time of its deletion.
type gone[T any] struct {
	was *T
	at  time.Time
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

// put returns a copy of a list with more elements, each in the place of one with the same key.
func put[T any](list, more []T, key func(T) string) []T {
	list = slices.Clone(list)
	for _, each := range more {
		list = slices.DeleteFunc(list, func(other T) bool { return key(other) == key(each) })
		list = append(list, each)
	}
	return list
}

// pageOf returns one page of a list and the token of the next page; nil after the last page.
func pageOf[T any](all []T, token *string, size int) ([]T, *string) {
	start := 0
	if value(token) != "" {
		start, _ = strconv.Atoi(*token)
	}
	start = min(start, len(all))
	if end := start + size; end < len(all) {
		return all[start:end], new(strconv.Itoa(end))
	}
	return all[start:], nil
}

// reordered returns a policy as AWS may return it: statements, actions, resources and similar lists are sets, so their
// order may differ from ours.
func reordered(policy string) string {
	var document any
	if json.Unmarshal([]byte(policy), &document) != nil {
		return policy
	}
	text, _ := json.Marshal(reversed(document))
	return string(text)
}

func reversed(value any) any {
	switch v := value.(type) {
	case []any:
		slices.Reverse(v)
		for i := range v {
			v[i] = reversed(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = reversed(v[key])
		}
	}
	return value
}
