package model

import (
	"fmt"
	"strings"
)

// found is the result of an exploration.
type found struct {
	worlds int
	// broken is the first violated property, path the moves that lead to it. Both are empty if all properties hold.
	broken string
	path   []string
	// requests is the highest request count in a world at rest.
	requests int8
	// taken are the transitions of the state machine that occurred.
	taken map[[2]string]bool
}

func (f found) String() string {
	return fmt.Sprintf("%s, after\n\t%s", f.broken, strings.Join(f.path, "\n\t"))
}

// node is a world in an exploration.
type node struct {
	world  world
	parent int32
	what   string
	next   []int32
	// before is the number of moves that lead here.
	before int32
}

// explore visits every world that the scene can reach, breadth first, and stops at the first violated property.
func (s *scene) explore() found {
	s.taken = map[[2]string]bool{}
	first := world{lease: lease{owner: none}, left: s.faults}
	nodes, known := []node{{world: first, parent: -1}}, map[world]int32{first: 0}
	result := found{taken: s.taken}
	for at := int32(0); int(at) < len(nodes); at++ {
		from := nodes[at].world
		rest, next := true, s.next(from)
		for _, move := range next {
			to := move.to.tidy()
			index, seen := known[to]
			if !seen {
				index = int32(len(nodes))
				known[to] = index
				nodes = append(nodes, node{world: to, parent: at, what: move.what})
			}
			nodes[at].next = append(nodes[at].next, index)
			nodes[index].before++
			rest = rest && move.fault
			broken := move.broken
			if broken == "" && !seen {
				broken = s.wrong(to)
			}
			if broken != "" {
				return found{worlds: len(nodes), broken: broken, path: append(path(nodes, at), move.what)}
			}
		}
		if !rest {
			continue
		}
		if broken := s.atRest(from); broken != "" {
			return found{worlds: len(nodes), broken: broken, path: path(nodes, at)}
		}
		result.requests = max(result.requests, from.lease.requested)
	}
	result.worlds = len(nodes)
	if circle := circle(nodes); circle >= 0 {
		result.broken, result.path = "iterations without end", path(nodes, circle)
	}
	return result
}

// path returns the moves that lead to a world.
func path(nodes []node, at int32) (steps []string) {
	for ; nodes[at].parent >= 0; at = nodes[at].parent {
		steps = append([]string{nodes[at].what}, steps...)
	}
	return steps
}

// circle returns a world on a cycle, or -1. Without cycles, every path comes to rest.
func circle(nodes []node) int32 {
	var free []int32
	left := len(nodes)
	for i := range nodes {
		if nodes[i].before == 0 {
			free = append(free, int32(i))
		}
	}
	for ; len(free) > 0; left-- {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, next := range nodes[i].next {
			if nodes[next].before--; nodes[next].before == 0 {
				free = append(free, next)
			}
		}
	}
	if left > 0 {
		for i := range nodes {
			if nodes[i].before > 0 {
				return int32(i)
			}
		}
	}
	return -1
}
