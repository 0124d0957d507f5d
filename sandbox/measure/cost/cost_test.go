package cost

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestEveryItemHasOnePrice(t *testing.T) {
	seen := map[Item]bool{}
	for _, p := range Prices {
		if seen[p.Item] || p.What == "" || p.Dollars <= 0 {
			t.Errorf("%+v", p)
		}
		seen[p.Item] = true
	}
	if len(seen) != int(QueueRequest)+1 {
		t.Errorf("%d prices", len(seen))
	}
}

func TestDollars(t *testing.T) {
	// 40 transitions are 0.001 dollars, a million writes 0.625.
	if got := (Counts{Transition: 40, Write: 1e6}).Dollars(); !near(got, 0.626) {
		t.Errorf("%v", got)
	}
}

// A call that was faster than a cold start counts as one; a slower one counts as it is.
func TestColdStarts(t *testing.T) {
	p := Pass{Calls: []functionlog.Call{
		{Function: "audit", Took: 500 * time.Millisecond, Memory: 1024},
		{Function: "report", Took: 3 * time.Second, Memory: 256},
		{Function: "validate", Took: 100 * time.Millisecond, Memory: 512},
	}}
	if got := p.counts()[GBSecond]; !near(got, 0.5+0.75+0.05) {
		t.Errorf("as measured: %v GB-seconds", got)
	}
	if got := p.cold()[GBSecond]; !near(got, 2+0.75+0.5) {
		t.Errorf("cold: %v GB-seconds", got)
	}
	if got := p.counts()[Request]; got != 3 {
		t.Errorf("%v requests", got)
	}
}

func TestCalls(t *testing.T) {
	p := Pass{}
	p.add(fault.Counted{Call: fault.Call{Function: "audit", Service: "dynamodb", Action: "GetItem"}, Count: 3})
	p.add(fault.Counted{Call: fault.Call{Function: "audit", Service: "dynamodb", Action: "Query"}, Count: 1})
	p.add(fault.Counted{Call: fault.Call{Function: "state-machine", Service: "dynamodb", Action: "UpdateItem"}, Count: 2})
	p.add(fault.Counted{Call: fault.Call{Function: "audit", Service: "events", Action: "PutEvents"}, Count: 1})
	p.add(fault.Counted{Call: fault.Call{Function: "audit", Service: "iam", Action: "GetRole"}, Count: 7})
	p.add(fault.Counted{Call: fault.Call{Function: "resync", Service: "dynamodb", Action: "GetItem"}, Count: 9})     // the schedule's
	p.add(fault.Counted{Call: fault.Call{Function: "", Service: "ssm", Action: "PutParameter"}, Count: 9})           // the user's
	p.add(fault.Counted{Call: fault.Call{Function: "rollout", Service: "eks", Action: "DescribeCluster"}, Count: 9}) // its schedule's
	c := p.counts()
	if c[Read] != 4 || c[Write] != 2 || c[Event] != 1 || p.Services["iam"] != 7 || p.Services["ssm"] != 0 || p.Changes != 1 {
		t.Errorf("%v, %+v", c, p)
	}
	p.add(fault.Counted{Call: fault.Call{Function: "audit", Service: "iam", Action: "TagRole"}, Count: 1})
	p.add(fault.Counted{Call: fault.Call{Function: "audit", Service: "kubernetes", Action: "apply nodepools.karpenter.sh"}, Count: 2})
	p.add(fault.Counted{Call: fault.Call{Function: "audit", Service: "kubernetes", Action: "list pods"}, Count: 2})
	if p.Changes != 4 {
		t.Errorf("%d calls that change something", p.Changes)
	}
}

// The measurement of a look counts what the function rollout does, and nothing else.
func TestALookCountsItsOwnFunction(t *testing.T) {
	p := Pass{Name: lookThat}
	p.add(fault.Counted{Call: fault.Call{Function: "rollout", Service: "eks", Action: "DescribeCluster"}, Count: 1})
	p.add(fault.Counted{Call: fault.Call{Function: "audit", Service: "eks", Action: "DescribeCluster"}, Count: 9})
	p.log(functionlog.Line{Function: "audit", Text: "x"})
	if p.Services["eks"] != 1 || p.Logged != 0 {
		t.Errorf("%+v", p)
	}
}

func TestLogs(t *testing.T) {
	p := Pass{}
	const report = "REPORT RequestId: 1-2\tDuration: 123.5 ms\tBilled Duration: 124 ms\tMemory Size: 1024 MB\tMax Memory Used: 90 MB"
	for _, line := range []functionlog.Line{
		{Function: "audit", Text: report}, {Function: "audit", Text: `{"msg":"audit"}`}, {Function: "resync", Text: report},
	} {
		p.log(line)
	}
	if len(p.Calls) != 1 || p.Calls[0].Function != "audit" || p.Logged != len(report)+len(`{"msg":"audit"}`) {
		t.Errorf("%+v", p)
	}
}

func TestAMonthIsTheSumOfItsLines(t *testing.T) {
	audit := Pass{Calls: []functionlog.Call{{Function: "audit", Took: time.Second, Memory: 1024}}, Reads: 20}
	change := Pass{Transitions: 18, Writes: 16, Reads: 19}
	look := Pass{Calls: []functionlog.Call{{Function: "rollout", Took: 100 * time.Millisecond, Memory: 256}}, Reads: 1}
	all := month(audit, change, look)
	var text strings.Builder
	sum := bill(&text, all)
	if !near(all[0].dollars, 730*(0.20/1e6+2*0.0000133334+20*0.125/1e6)) ||
		!near(all[2].dollars, 8760*(0.20/1e6+0.125*0.0000133334+0.125/1e6)) ||
		!near(all[4].dollars, 0.30*100/730) {
		t.Errorf("%+v", all)
	}
	if sum < 0.15 || sum > 0.30 || !strings.Contains(text.String(), "730 audits") {
		t.Errorf("%v: %s", sum, text.String())
	}
}
