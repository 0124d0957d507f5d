// Command mutants changes a program in one place at a time and shows which changes no test notices.
//
//	go build -C tools -o ../.cache/bin/mutants ./mutants
//	.cache/bin/mutants -seed 1 -n 200 ./internal/params ./internal/plan/...
//
// It takes n changes at random from those that it can make in the packages, builds the packages' tests once, with all
// changes in them and all off, and runs them once for each change, with this one on. A change that the tests of its own
// package do not notice is tried against the packages that import it. The files of the packages are not written to.
// Tests judge only if they all run and pass without a change; otherwise the changes of their package are reported as not judged.
// Exit status 1 means that changes were not noticed, or not judged.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	seed := flag.Uint64("seed", 1, "which changes are taken")
	n := flag.Int("n", 200, "number of changes")
	first := flag.Int("first", 1, "the first change to try, to go on with an interrupted run")
	judges := flag.String("judges", "./...", "the packages whose tests are run, with commas")
	slow := flag.Duration("slow", time.Minute, "leave out the tests of packages that take longer without a change")
	within := flag.Duration("within", 10*time.Minute, "begin no further change after this time")
	flag.Parse()
	open, err := run(options{*seed, *n, *first, *slow, time.Now().Add(*within), strings.Split(*judges, ","), flag.Args()})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if open > 0 {
		os.Exit(1)
	}
}

type options struct {
	seed     uint64
	n, first int
	slow     time.Duration
	end      time.Time
	judges   []string
	patterns []string
}

// run returns how many changes were not noticed or not judged.
func run(o options) (open int, err error) {
	packages, err := list(o.patterns)
	if err != nil {
		return 0, err
	}
	w, err := prepare(packages, o)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(w.dir)
	killed, survived, last := 0, 0, o.first-1
	for i, m := range w.mutants {
		if i+1 < o.first {
			continue
		}
		if time.Now().After(o.end) {
			break
		}
		last = i + 1
		switch by, notJudged := w.judge(i+1, m); {
		case by != "":
			killed++
			fmt.Printf("%3d killed by %s  %s\n", i+1, by, m)
		case notJudged != "":
			fmt.Printf("%3d not judged (%s)  %s\n", i+1, notJudged, m)
		default:
			survived++
			fmt.Printf("%3d SURVIVED  %s\n", i+1, m)
		}
	}
	open = last - o.first + 1 - killed
	fmt.Printf("seed %d: changes %d to %d of %d: %d killed, %d survived, %d not judged\n",
		o.seed, o.first, last, len(w.mutants), killed, survived, open-survived)
	for _, p := range w.tests {
		switch {
		case p.binary == "":
			fmt.Println("not needed:", p.ImportPath)
		case p.refused != nil:
			fmt.Printf("left out: %s: %v\n", p.ImportPath, p.refused)
		}
	}
	return open, nil
}
