// Command mutants changes a program in one place at a time and shows which changes no test notices.
//
//	go build -C tools -o ../.cache/bin/mutants ./mutants
//	.cache/bin/mutants -seed 1 -n 200 ./internal/params ./internal/plan/...
//
// It takes n changes at random from those that it can make in the packages, builds the packages' tests once, with all
// changes in them and all off, and runs them once for each change, with this one on. A change that the tests of its own
// package do not notice is tried against the packages that import it. The files of the packages are not written to.
// Exit status 1 means that changes were not noticed.
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
	slow := flag.Duration("slow", time.Minute, "leave out the tests of packages that take longer")
	within := flag.Duration("within", 10*time.Minute, "begin no further change after this time")
	flag.Parse()
	survived, err := run(options{*seed, *n, *first, *slow, time.Now().Add(*within), strings.Split(*judges, ","), flag.Args()})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survived > 0 {
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

func run(o options) (survived int, err error) {
	packages, err := list(o.patterns)
	if err != nil {
		return 0, err
	}
	w, err := prepare(packages, o)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(w.dir)
	killed, last := 0, o.first-1
	for i, m := range w.mutants {
		if i+1 < o.first {
			continue
		}
		if time.Now().After(o.end) {
			break
		}
		last = i + 1
		by, err := w.judge(i+1, m)
		if err != nil {
			return 0, err
		}
		if by != "" {
			killed++
			fmt.Printf("%3d killed by %s  %s\n", i+1, by, m)
			continue
		}
		survived++
		fmt.Printf("%3d SURVIVED  %s\n", i+1, m)
	}
	fmt.Printf("seed %d: changes %d to %d of %d: %d killed, %d survived\n", o.seed, o.first, last, len(w.mutants), killed, survived)
	for _, p := range w.tests {
		switch {
		case p.binary == "":
			fmt.Println("not needed:", p.ImportPath)
		case p.leftOut:
			fmt.Printf("left out, because its tests take longer than %v or fail: %s\n", o.slow, p.ImportPath)
		}
	}
	return survived, nil
}
