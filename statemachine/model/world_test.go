package model

// The bounds of a world: how many executions live at once, and how many events come from outside.
const (
	maxExecutions = 5
	maxEvents     = 3
	// maxRequests is more than any world comes to that ends: counts above it mean passes without end.
	maxRequests = 14
)

// Owners that are no execution: nobody, and one that has ended and is forgotten.
const (
	none int8 = -1
	gone int8 = maxExecutions
)

// world is everything that counts, at one moment. It is comparable, so that a set of worlds is a map.
type world struct {
	lease      lease
	executions [maxExecutions]execution
	events     [maxEvents]event
	left       faults

	// wanted has a bit for each event whose write is in Parameter Store, or whose change request is in the table; applied
	// has those of the last plan that a step has carried out.
	wanted, applied uint8
	// failed tells that the rack's status is Failed.
	failed bool

	// The rest is for the properties. faulty: something has gone wrong. excused: something that only the schedule makes
	// good. jumped: a lease has expired while its owner was alive. noticeLost: nobody hears of an execution's end. ticked:
	// the schedule has ticked, and nothing has gone wrong since.
	faulty, excused, jumped, noticeLost, ticked bool
	// round is what the last round that began had noted as requested.
	round int8
}

// lease is the item of the table. Times are told by what they mean: expired, or that a call may still be in flight (quiet).
type lease struct {
	owner                              int8
	expired, quiet                     bool
	requested, served, fullAt, forceAt int8
}

// event is one from outside; its place in the array is its name.
type event struct {
	stage eventStage
	// count is what it was counted as.
	count int8
}

type eventStage uint8

const (
	toCome eventStage = iota
	onTheBus
	delivered
	dropped
)

// execution is one of the state machine. The zero execution is a place for a new one.
type execution struct {
	at place
	// phase is how far a function's call has come: called, holding (it has renewed the lease), and for Validate read.
	phase uint8
	// input is the event that it was started with, or one of Sawhorse's own.
	input uint8
	// row is how many executions before it ended early.
	row uint8

	dead, aborted bool
	// inFlight is a call that goes on although the execution is dead.
	inFlight bool
	notice   noticeStage
	followed bool

	// Variables of the state machine, and what the function validate found.
	generation  int8
	seen        uint8
	full, force bool
	quiet       bool
	failure     bool
	// news tells a call that something has been requested since the plan was made; waited: the step has waited once.
	news, waited bool
	// stray counts what it changed after another had taken its lease.
	stray uint8
}

// Inputs that are no event from outside.
const (
	again    uint8 = maxEvents     // what resync and a hand-over start with
	schedule uint8 = maxEvents + 1 // a full pass
)

const (
	called uint8 = iota
	holding
	read
)

// noticeStage is how far resync has come with Step Functions' notice that an execution has ended.
type noticeStage uint8

const (
	noNotice noticeStage = iota
	noticed
	told
	following
)

// faults is how often what may still go wrong.
type faults struct {
	// Executions that are stopped, answers that are lost after the effect, calls that fail in the end, steps that fail.
	aborts, lostAnswers, errors, stepFailures uint8
	// Leases that expire while their owner lives: a clock jumps, or a call hangs.
	jumps uint8
	// Reads of Parameter Store that come from before a write.
	staleReads uint8
	// Events and notices that are dropped or repeated, and calls of resync that are stopped between two effects.
	drops, repeats, noticeDrops, noticeRepeats, resyncStops uint8
	// Hand-overs to a successor are no fault, but need a bound.
	handOvers uint8
}

// tidy forgets executions that nothing refers to any more, and brings the others into one order: their names mean nothing.
func (w world) tidy() world {
	var keys [maxExecutions]uint64
	for i := range w.executions {
		e, owns := &w.executions[i], w.lease.owner == int8(i)
		if e.dead && e.notice == noNotice && !e.inFlight && !owns {
			*e = execution{}
		}
		keys[i] = e.key()<<1 | bit(owns)
	}
	for i := 1; i < maxExecutions; i++ {
		for j := i; j > 0 && keys[j] > keys[j-1]; j-- {
			keys[j], keys[j-1] = keys[j-1], keys[j]
			w.executions[j], w.executions[j-1] = w.executions[j-1], w.executions[j]
			switch w.lease.owner {
			case int8(j):
				w.lease.owner--
			case int8(j - 1):
				w.lease.owner++
			}
		}
	}
	return w
}

// key is a number for all that an execution is.
func (e *execution) key() uint64 {
	key := uint64(e.at)
	key = key<<2 | uint64(e.phase)
	key = key<<3 | uint64(e.input)
	key = key<<3 | uint64(e.row)
	key = key<<2 | uint64(e.notice)
	key = key<<5 | uint64(e.generation)
	key = key<<3 | uint64(e.seen)
	key = key<<2 | uint64(e.stray)
	for _, b := range [...]bool{e.dead, e.aborted, e.inFlight, e.followed, e.full, e.force, e.quiet, e.failure, e.news, e.waited} {
		key = key<<1 | bit(b)
	}
	return key
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// converged tells that everything that was asked for has been done, and that the status says so.
func (w *world) converged() bool {
	return w.lease.requested == w.lease.served && w.applied == w.wanted && w.lease.owner == none && !w.failed
}
