package heartbeat

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// There is a line at least every 15 s, also if the status function takes 5 s. Each write postpones
// the next status line.
func TestNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := New(&out, "the sandbox starts")
		time.Sleep(25 * time.Second)
		fmt.Fprintln(w, "first")
		w.Ask(func() string {
			time.Sleep(5 * time.Second)
			return "slow"
		})
		time.Sleep(14 * time.Second)
		if want := "… 10 s: the sandbox starts\n… 20 s: the sandbox starts\nfirst\n"; out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
		out.Reset()
		time.Sleep(18 * time.Second)
		if want := "… 40 s: slow\n… 55 s: slow\n"; out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
		out.Reset()
		time.Sleep(10 * time.Second) // while the status function runs
		w.Stop()
		fmt.Fprintln(w, "last")
		time.Sleep(time.Minute)
		if want := "last\n"; out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}
