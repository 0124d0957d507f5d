package rates

import (
	"net/http/httptest"
	"testing"
	"time"
)

func limited(t *testing.T) (*Limiter, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := &Limiter{Now: func() time.Time { return now }}
	l.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", "/_sandbox/rates", nil))
	return l, &now
}

// taken returns how many of n calls were allowed.
func taken(l *Limiter, n int, service, action string) (given int) {
	for range n {
		if l.Take(service, action, "") {
			given++
		}
	}
	return given
}

// A bucket allows its burst, then the tokens added each second, and never more than the burst at once.
func TestABucketFillsAtItsRate(t *testing.T) {
	l, now := limited(t)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 3}, {0, 0}, {time.Second, 3}, {500 * time.Millisecond, 1}, {time.Hour, 3}} {
		if *now = now.Add(step.after); taken(l, 10, "ssm", "PutParameter") != step.want {
			t.Errorf("after %s not %d", step.after, step.want)
		}
	}
}

// SSM's reads share one bucket. Each action of EC2 has its own. Actions without a quota are never rejected, and nothing
// is rejected while the limiter is off.
func TestWhoSharesABucket(t *testing.T) {
	l, _ := limited(t)
	if got := taken(l, 30, "ssm", "GetParameter") + taken(l, 30, "ssm", "GetParametersByPath"); got != 40 {
		t.Errorf("%d reads at once", got)
	}
	if got := taken(l, 150, "ec2", "DescribeSubnets") + taken(l, 150, "ec2", "DescribeInstances"); got != 200 {
		t.Errorf("%d calls of EC2 at once", got)
	}
	if got := taken(l, 9_999, "sqs", "GetQueueUrl"); got != 9_999 {
		t.Errorf("%d calls of SQS", got)
	}
	l.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("DELETE", "/_sandbox/rates", nil))
	if got := taken(l, 50, "ssm", "PutParameter"); got != 50 {
		t.Errorf("%d writes while it is off", got)
	}
}

func TestReport(t *testing.T) {
	l, now := limited(t)
	taken(l, 5, "ssm", "PutParameter")
	*now = now.Add(100 * time.Millisecond)
	taken(l, 1, "ssm", "PutParameter")
	*now = now.Add(900 * time.Millisecond)
	taken(l, 3, "ssm", "PutParameter")
	uses := l.Report()
	if len(uses) != 1 {
		t.Fatalf("%+v", uses)
	}
	if u := uses[0]; u.Given != 6 || u.Refused != 3 || u.Peak != 1 || !u.Published {
		t.Errorf("%+v", u)
	}
}

// All tries of a call have the same invocation. One call waits until it is allowed, another one is given up.
func TestWhoWaited(t *testing.T) {
	l, now := limited(t)
	taken(l, 3, "ssm", "PutParameter")
	const moment = 200 * time.Millisecond
	for _, step := range []struct {
		after      time.Duration
		invocation string
		want       bool
	}{{0, "patient", false}, {0, "hasty", false}, {moment, "patient", false}, {moment, "patient", true}, {0, "hasty", false}} {
		*now = now.Add(step.after)
		if l.Take("ssm", "PutParameter", step.invocation) != step.want {
			t.Errorf("%+v", step)
		}
	}
	if u := l.Report()[0]; u.Waited != 0.4 || u.GivenUp != 1 {
		t.Errorf("%+v", u)
	}
}
