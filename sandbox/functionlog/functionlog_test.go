package functionlog

import (
	"slices"
	"testing"
	"time"
)

func TestLinesAndCalls(t *testing.T) {
	lines, err := decode(`{"group": "/aws/lambda/Sawhorse-audit", "lines": ["{\"msg\":\"audit\"}"]}
{"group": "/aws/lambda/Sawhorse-resync",
 "lines": ["REPORT RequestId: 1\tDuration: 123.5 ms\tBilled Duration: 124 ms\tMemory Size: 256 MB\tMax Memory Used: 90 MB"]}`)
	if err != nil || len(lines) != 2 || lines[0] != (Line{"audit", `{"msg":"audit"}`}) {
		t.Fatalf("%q, %v", lines, err)
	}
	var calls []Call
	for _, line := range lines {
		if call, is := line.Call(); is {
			calls = append(calls, call)
		}
	}
	if !slices.Equal(calls, []Call{{"resync", 123500 * time.Microsecond, 256}}) {
		t.Errorf("%+v", calls)
	}
	if _, err := decode(`{"group": `); err == nil {
		t.Error("half a text is taken")
	}
}
