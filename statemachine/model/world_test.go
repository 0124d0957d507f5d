package model

// Bounds of a world: the number of executions at one time, and of events from outside.
const (
	maxExecutions = 5
	maxEvents     = 3
	// maxRequests is more than any terminating world reaches. A higher count means passes without end.
	maxRequests = 14
)

// Owners that are not a current execution: none, and an execution that has ended and was removed.
const (
	none int8 = -1
	gone int8 = maxExecutions
)

// world is the complete state at one moment. It is comparable, so that it can be a map key.
type world struct {
	lease      lease
	executions [maxExecutions]execution
	events     [maxEvents]event
	left       faults

	// wanted has a bit for each event whose write is in Parameter Store.
	// applied has the bits of the last plan that a step has applied.
	wanted, applied uint8
	// failed means that the rack's status is Failed, running that it has a pass that waits.
	failed, running bool

	// The rest is for the properties. faulty: a fault has occurred. excused: only the schedule can complete the work.
	// jumped: a lease has expired while its owner was alive. noticeLost: the notice of an execution's end was lost.
	// ticked: the schedule has ticked, and no fault has occurred since.
	faulty, excused, jumped, noticeLost, ticked bool
	// iteration is the request count that the last iteration began with.
	iteration int8
}

// lease is the item of the table. Times are replaced by their meaning: expired, or a call may still be in flight
// (quiet).
type lease struct {
	owner                              int8
	expired, quiet                     bool
	requested, served, fullAt, forceAt int8
}

// event is an event from outside, identified by its index.
type event struct {
	stage eventStage
	// count is the request count that the event got.
	count int8
}

type eventStage uint8

const (
	toCome eventStage = iota
	onTheBus
	delivered
	dropped
)

// execution is an execution of the state machine. The zero execution is a free slot.
type execution struct {
	at place
	// phase is the progress of a function's call: called, holding (it has renewed the lease) and, for Validate, read.
	phase uint8
	// input is the event that the execution was started with, or one of Sawhorse's own inputs.
	input uint8
	// row is the number of executions in a row before this one that ended early.
	row uint8

	dead, aborted bool
	// inFlight means that a call is still running although the execution is dead.
	inFlight bool
	notice   noticeStage
	followed bool

	// Variables of the state machine, and results of the function validate.
	generation  int8
	seen        uint8
	full, force bool
	quiet       bool
	failure     bool
	// news means that something was requested after the plan was made. waited means that a step has waited once, second
	// that the second step of the plan runs.
	news, waited, second bool
	// stray is the number of its changes after another execution had taken its lease.
	stray uint8
}

// Inputs that are not events from outside.
const (
	again    uint8 = maxEvents     // the input that resync and a hand-over use
	schedule uint8 = maxEvents + 1 // a full pass
)

const (
	called uint8 = iota
	holding
	read
)

// noticeStage is resync's progress with Step Functions' notice of an execution's end.
type noticeStage uint8

const (
	noNotice noticeStage = iota
	noticed
	told
	following
)

// faults holds how many more faults of each kind may occur.
type faults struct {
	// Executions that are stopped, answers that are lost after the effect, calls that fail after all retries, steps
	// that fail.
	aborts, lostAnswers, errors, stepFailures uint8
	// Leases that expire while their owner is alive, because a clock jumps or a call hangs.
	jumps uint8
	// Reads of Parameter Store that return the state before a write.
	staleReads uint8
	// Events and notices that are dropped or repeated, and calls of resync that are stopped between two effects.
	drops, repeats, noticeDrops, noticeRepeats, resyncStops uint8
	// Hand-overs to a successor are not faults, but need a limit.
	handOvers uint8
}

// tidy removes executions that nothing refers to, and sorts the others, because their order has no meaning.
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

// key encodes an execution as a number.
func (e *execution) key() uint64 {
	key := uint64(e.at)
	key = key<<2 | uint64(e.phase)
	key = key<<3 | uint64(e.input)
	key = key<<3 | uint64(e.row)
	key = key<<2 | uint64(e.notice)
	key = key<<5 | uint64(e.generation)
	key = key<<3 | uint64(e.seen)
	key = key<<2 | uint64(e.stray)
	for _, b := range [...]bool{e.dead, e.aborted, e.inFlight, e.followed, e.full, e.force, e.quiet, e.failure, e.news, e.waited, e.second} {
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

// converged reports whether everything that was requested is done and the status shows it.
func (w *world) converged() bool {
	return w.lease.requested == w.lease.served && w.applied == w.wanted && w.lease.owner == none && !w.failed && !w.running
}
