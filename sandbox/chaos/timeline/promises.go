package timeline

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Lag is the maximum delay of a watch. Two moments that were reported within Lag of each other may have happened in the
// other order.
const Lag = time.Second

// Part is a resource that is deleted or changed. Is matches the lines that report it.
type Part struct {
	What string
	Is   func(string) bool
}

// Serving lists what is deleted only after the last NodeClaim and the last EC2NodeClass: Karpenter needs it to
// terminate nodes.
var Serving = []Part{
	{"controller", Like(`^DELETED Deployment karpenter `)},
	{"rule", Like(`^AWS Sawhorse-\S* events DeleteRule `)},
	{"queue", Like(`^AWS Sawhorse-\S* sqs DeleteQueue `)},
	{"credentials", Like(`^AWS Sawhorse-\S* eks DeletePodIdentityAssociation `)},
	{"access entry of the nodes", Like(`^AWS Sawhorse-Infrastructure\S* eks DeleteAccessEntry `)},
	{"roles", Like(`^AWS Sawhorse-\S* iam DeleteRole `)},
}

// handOver lists what may change only while NodePool workload is Ready. When Karpenter is turned on, existing capacity
// is removed only once its replacement is Ready. When Karpenter is turned off, that capacity is back before the pool is
// deleted. Of a Deployment, only one field counts.
var handOver = []struct {
	Part
	field *regexp.Regexp
}{
	{Part{"Cluster Autoscaler's scale", Like(`^MODIFIED Deployment cluster-autoscaler `)}, regexp.MustCompile(` replicas=\S*`)},
	{Part{"the pin of metrics-server", Like(`^MODIFIED Deployment metrics-server .* system-node=true`)},
		regexp.MustCompile(` system-node=\S*`)},
	{Part{"the build group's scale", Like(`^AWS Sawhorse-Nodegroups\S* eks UpdateNodegroupConfig .*/node-groups/build/`)}, nil},
}

// foundation lists what must exist before the controller is deployed: its creation was requested, and it has not been
// deleted since.
var foundation = []struct {
	what       string
	made, gone func(string) bool
}{
	{"its role", Like(`^AWS Sawhorse-\S* iam CreateRole `), Like(`^AWS Sawhorse-\S* iam DeleteRole `)},
	{"its credentials", Like(`^AWS Sawhorse-\S* eks CreatePodIdentityAssociation `),
		Like(`^AWS Sawhorse-\S* eks DeletePodIdentityAssociation `)},
	{"the queue", Like(`^AWS Sawhorse-\S* sqs CreateQueue `), Like(`^AWS Sawhorse-\S* sqs DeleteQueue `)},
	{"the rule", Like(`^AWS Sawhorse-\S* events PutRule `), Like(`^AWS Sawhorse-\S* events DeleteRule `)},
}

var (
	controllerComes = Like(`^ADDED Deployment karpenter `)
	poolComes       = Like(`^ADDED (NodePool|EC2NodeClass) `)
)

// Broken returns the ordering promises that the moments since a time have broken. It takes the moments before that time
// into account.
func Broken(all []Moment, from time.Time) []string {
	h := &history{all: all, lives: lives(all)}
	var broken []string
	for i, m := range all {
		if m.At.Before(from) {
			continue
		}
		for _, complaint := range slices.Concat(h.served(m), h.handedOver(i), h.founded(m)) {
			broken = append(broken, Clock(m.At)+" "+complaint)
		}
	}
	return broken
}

// history has the moments, and the lifetimes of objects that follow from them.
type history struct {
	all   []Moment
	lives []life
}

// life is the lifetime of an object: from its creation until its deletion, or the period in which it was Ready.
type life struct {
	object   string // kind and name
	ready    bool   // the period in which it was Ready
	from, to time.Time
}

// forever is later than every moment.
var forever = time.Unix(math.MaxInt32, 0)

func lives(all []Moment) []life {
	var found []life
	open := map[life]int{}
	begin := func(l life, at time.Time) {
		if _, already := open[l]; !already {
			open[l] = len(found)
			found = append(found, life{l.object, l.ready, at, forever})
		}
	}
	end := func(l life, at time.Time) {
		if i, lived := open[l]; lived {
			found[i].to = at
			delete(open, l)
		}
	}
	for _, m := range all {
		words := strings.Fields(m.What)
		if len(words) < 3 || words[0] == "AWS" {
			continue
		}
		alive := life{object: words[1] + " " + words[2]}
		ready := life{object: alive.object, ready: true}
		if words[0] == "DELETED" {
			end(alive, m.At)
			end(ready, m.At)
			continue
		}
		begin(alive, m.At)
		if slices.Contains(words, "Ready=True") {
			begin(ready, m.At)
		} else {
			end(ready, m.At)
		}
	}
	return found
}

// served reports the parts that Karpenter needs and that were deleted while a NodeClaim or
// an EC2NodeClass still existed.
func (h *history) served(m Moment) []string {
	var complaints []string
	for _, part := range Serving {
		if !part.Is(m.What) {
			continue
		}
		for _, l := range h.lives {
			kind, _, _ := strings.Cut(l.object, " ")
			if (kind == "NodeClaim" || kind == "EC2NodeClass") && !l.ready && l.from.Before(m.At) && l.to.After(m.At.Add(Lag)) {
				complaints = append(complaints, fmt.Sprintf("the %s went while %s was there", part.What, l.object))
			}
		}
	}
	return complaints
}

// handedOver reports the parts of the handover that changed while NodePool workload was not Ready.
func (h *history) handedOver(i int) []string {
	m := h.all[i]
	var complaints []string
	for _, part := range handOver {
		if part.Is(m.What) && h.changed(i, part.field) && !slices.ContainsFunc(h.lives, func(l life) bool {
			return l.object == "NodePool workload" && l.ready && l.from.Before(m.At.Add(Lag)) && l.to.After(m.At.Add(-Lag))
		}) {
			complaints = append(complaints, part.What+" changed while NodePool workload was not Ready")
		}
	}
	return complaints
}

// changed reports whether the field differs from the previous line about the same object. A call always
// counts as a change.
func (h *history) changed(i int, field *regexp.Regexp) bool {
	if field == nil {
		return true
	}
	about := strings.Fields(h.all[i].What)[1:3]
	for _, before := range slices.Backward(h.all[:i]) {
		if words := strings.Fields(before.What); len(words) > 2 && slices.Equal(words[1:3], about) {
			return field.FindString(before.What) != field.FindString(h.all[i].What)
		}
	}
	return false // there is no earlier line
}

// founded reports a controller that was created before what it needs, and pools that were
// created before the controller.
func (h *history) founded(m Moment) []string {
	var complaints []string
	if controllerComes(m.What) {
		for _, part := range foundation {
			if made := h.latest(part.made, m.At.Add(Lag)); made.IsZero() || h.latest(part.gone, m.At).After(made) {
				complaints = append(complaints, "the controller came before "+part.what)
			}
		}
	}
	if poolComes(m.What) && !slices.ContainsFunc(h.lives, func(l life) bool {
		return l.object == "Deployment karpenter" && l.from.Before(m.At.Add(Lag)) && l.to.After(m.At)
	}) {
		complaints = append(complaints, strings.Join(strings.Fields(m.What)[1:3], " ")+" came before the controller")
	}
	return complaints
}

// latest returns when something was last seen up to a time.
func (h *history) latest(is func(string) bool, until time.Time) time.Time {
	after := slices.IndexFunc(h.all, func(m Moment) bool { return m.At.After(until) })
	if after < 0 {
		after = len(h.all)
	}
	return Last(h.all[:after], is)
}
