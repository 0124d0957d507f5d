package model

import (
	"sync"
	"testing"
)

// Kinds of events.
var (
	write = kind{}
	full  = kind{full: true}
	force = kind{force: true}
)

// scenes are what is explored. Together they cover every fault, and many faults in pairs.
var scenes = map[string]scene{
	"three events":         {kinds: []kind{write, full, force}},
	"stopped":              {kinds: []kind{write, force}, faults: faults{aborts: 1, noticeRepeats: 1}},
	"stopped, and resync":  {kinds: []kind{write, force}, faults: faults{aborts: 1, resyncStops: 1}},
	"stopped twice":        {kinds: []kind{force}, faults: faults{aborts: 2, noticeRepeats: 1, repeats: 1}},
	"stopped in silence":   {kinds: []kind{write, full}, faults: faults{aborts: 1, noticeDrops: 1}},
	"a clock jumps":        {kinds: []kind{write, force}, faults: faults{jumps: 1}},
	"a clock jumps, twice": {kinds: []kind{write, write}, faults: faults{jumps: 2}},
	"a jump and a stop":    {kinds: []kind{write, write}, faults: faults{jumps: 1, aborts: 1}, quick: true},
	"a jump and a failure": {kinds: []kind{write, write}, faults: faults{jumps: 1, stepFailures: 1}},
	"a step fails":         {kinds: []kind{write, full, write}, faults: faults{stepFailures: 1}, quick: true},
	"steps fail":           {kinds: []kind{write, force}, faults: faults{stepFailures: 2}},
	"fails and is stopped": {kinds: []kind{write, write}, faults: faults{stepFailures: 1, aborts: 1}, quick: true},
	"answers are lost":     {kinds: []kind{write, force}, faults: faults{lostAnswers: 2, handOvers: 1}},
	"AWS fails":            {kinds: []kind{write, full}, faults: faults{errors: 2, handOvers: 1}},
	"handed over":          {kinds: []kind{write, full, write}, faults: faults{handOvers: 1}},
	"handed over, stopped": {kinds: []kind{write, full}, faults: faults{handOvers: 1, aborts: 1}, quick: true},
	"events misbehave":     {kinds: []kind{force, write}, faults: faults{drops: 1, repeats: 1}},
	"a replica lags":       {kinds: []kind{write, write, full}, faults: faults{staleReads: 2}},
	"lags and is stopped":  {kinds: []kind{write, write}, faults: faults{staleReads: 1, aborts: 1}},
	"dry runs and noise":   {kinds: []kind{write, {dryRun: true}, {noRack: true}}, faults: faults{stepFailures: 1, aborts: 1}},
	"no such rack":         {kinds: []kind{full, force, full}, unknown: true, faults: faults{errors: 1, lostAnswers: 1}},
	"no such rack, fails":  {kinds: []kind{full, force}, unknown: true, faults: faults{stepFailures: 1, aborts: 1}},
	"a step never works":   {kinds: []kind{write, full}, stepFails: true},
	"every pass dies":      {kinds: []kind{write, full}, dies: true},
}

// explored has the result of each scene with the protocol as built.
var explored = sync.OnceValue(func() map[string]found {
	all := map[string]found{}
	for name, s := range scenes {
		if s.quick && testing.Short() {
			continue
		}
		s.protocol = asBuilt()
		all[name] = s.explore()
	}
	return all
})

func TestModel(t *testing.T) {
	worlds := 0
	for name, result := range explored() {
		worlds += result.worlds
		t.Logf("%s: %d worlds, at most %d requests", name, result.worlds, result.requests)
		if result.broken != "" {
			t.Errorf("%s: %s", name, result)
		}
	}
	t.Logf("%d worlds", worlds)
}
