// Package resource writes the resources of steps in services of AWS that are eventually consistent: for some time after a
// write, a read may show the state before it. So what Sawhorse has just written is not judged by a read: it is recorded
// before the write, and a later call writes again whatever the record does not confirm.
//
// AWS documents that for IAM, EC2 and SQS's attributes, says of EKS's Pod Identity associations that they are eventually
// consistent, and promises nothing else for EKS, EventBridge and Parameter Store. The records in DynamoDB (read with
// ConsistentRead) and the cluster's objects (the API server reads from etcd with a quorum) need none of this.
package resource

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Lag is how long after a write AWS may show the state before it. IAM takes seconds; Terraform waits for up to two minutes,
// and SQS documents one for a queue's attributes.
const Lag = 3 * time.Minute

// Record is the last write of one aspect of a resource, such as one policy of a role.
type Record struct {
	// Value is what was written; empty if the aspect was removed.
	Value string `json:"value"`
	// Read is what was read before the write.
	Read string `json:"read,omitempty"`
	// Earlier are the values that other writes gave it before, within the Lag. A write that is not Done may not have been
	// made, so one of them may still be in force.
	Earlier []string `json:"earlier,omitempty"`
	// At is when the write ended, or began if it is not Done.
	At   time.Time `json:"at"`
	Done bool      `json:"done,omitempty"`
	// Begun is when the first of the writes of this value began of which no earlier one is Done.
	Begun time.Time `json:"begun,omitzero"`
}

// Records stores the records of a rack's resources by aspect, for each step.
type Records interface {
	Written(ctx context.Context, rack, step string) (map[string]Record, error)
	SaveWritten(ctx context.Context, rack, step string, written map[string]Record) error
}

// Writer makes the writes of one call of a step, and knows what was written within the Lag. It has the call's progress.
type Writer struct {
	*outcome.Progress

	records    Records
	rack, step string
	now        func() time.Time
	written    map[string]Record
	// unsaved means that writes have been made since the last save.
	unsaved bool
}

// Open returns the writer for a call of a step.
func Open(ctx context.Context, records Records, rack, step string, now func() time.Time) (*Writer, error) {
	written, err := records.Written(ctx, rack, step)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(written, func(_ string, r Record) bool { return now().Sub(r.At) >= Lag })
	return &Writer{
		Progress: new(outcome.Progress), records: records, rack: rack, step: step, now: now, written: written,
	}, nil
}

// End ends the call: it records that its writes have been made, and returns the call's progress.
func (w *Writer) End(ctx context.Context, err error) (outcome.Progress, error) {
	if w.unsaved {
		if failed := w.save(ctx); failed != nil && (err == nil || outcome.IsNotYet(err, outcome.Waiting)) {
			err = failed
		}
	}
	return w.Progress.Until(err)
}

// Write is one write of an aspect.
type Write struct {
	// Aspect names what is written, as a path: "role demo-karpenter/policies/launch".
	Aspect string
	// Value is what the aspect is after it, Read what was read. Empty means that it is not there.
	Read, Value string
	// Parts are the values of aspects below it that the write sets too, by the rest of their path: "/tags".
	Parts map[string]string
	// Do makes the write. It may be called although the aspect has the value already.
	Do func(context.Context) error
	// Change is what is reported of it, unless it is zero.
	Change outcome.Change
}

// Write makes a write, unless a read has shown its value and no write within the Lag contradicts that. The write is
// recorded first: a call that is stopped in it makes the next one write again, or take it back.
func (w *Writer) Write(ctx context.Context, write Write) error {
	if write.Read == write.Value && w.Confirms(write.Aspect, write.Value) {
		return nil
	}
	last, written := w.written[write.Aspect]
	record := Record{Value: write.Value, Read: write.Read, Earlier: last.Earlier, At: w.now().UTC(), Begun: w.now().UTC()}
	if written && !last.Done && last.Value == write.Value {
		record.Begun = last.Begun
	}
	if written && last.Value != write.Value && !slices.Contains(record.Earlier, last.Value) {
		record.Earlier = append(slices.Clone(record.Earlier), last.Value)
	}
	w.written[write.Aspect] = record
	if err := w.save(ctx); err != nil {
		return fmt.Errorf("%s: %w", write.Aspect, err)
	}
	if err := write.Do(ctx); err != nil {
		return w.undo(write.Aspect, last, written, err)
	}
	record.At, record.Done = w.now().UTC(), true
	w.written[write.Aspect], w.unsaved = record, true
	for part, value := range write.Parts {
		w.written[write.Aspect+part] = Record{Value: value, At: record.At, Done: true}
	}
	if write.Change != (outcome.Change{}) {
		w.Changes = append(w.Changes, write.Change)
	}
	return nil
}

// notMade is the error of a write that AWS has certainly not made.
type notMade struct{ error }

func (n notMade) Unwrap() error { return n.error }

// NotMade returns the error of a write that AWS has refused, so that nothing was written. An error that may be the answer
// to a second try, such as that a resource exists, is none of these.
func NotMade(err error) error { return notMade{err} }

// undo returns the error of a write. It restores the record from before one that was certainly not made.
func (w *Writer) undo(aspect string, last Record, written bool, err error) error {
	if errors.As(err, new(notMade)) {
		if w.written[aspect] = last; !written {
			delete(w.written, aspect)
		}
		w.unsaved = true
	}
	return err
}

func (w *Writer) save(ctx context.Context) error {
	w.unsaved = false
	return w.records.SaveWritten(ctx, w.rack, w.step, w.written)
}

// Confirms reports whether an aspect that was read with a value has it: no other value was written within the Lag, and
// what was read is not a part of a resource of the same name that was deleted within the Lag.
func (w *Writer) Confirms(aspect, value string) bool {
	last, written := w.written[aspect]
	for whole, record := range w.written {
		if strings.HasPrefix(aspect, whole+"/") && slices.Contains(record.Earlier, "") && last.At.Before(record.At) {
			return false
		}
	}
	return !written || last.Done && last.Value == value
}

// Recent reports whether an aspect was written within the Lag.
func (w *Writer) Recent(aspect string) bool {
	_, written := w.written[aspect]
	return written
}

// renoted is the age at which a note is written again.
const renoted = Lag / 3

// Note keeps a text for later calls, such as the ID of what AWS has accepted, until the Lag after the last Note of it. An empty
// text ends that.
func (w *Writer) Note(name, text string) {
	last := w.written[name]
	switch {
	case text == "" && last.Value == "" || text == last.Value && w.now().Sub(last.At) < renoted:
		return
	case text == "":
		delete(w.written, name)
	default:
		w.written[name] = Record{Value: text, At: w.now().UTC(), Done: true}
	}
	w.unsaved = true
}

// Noted returns the text of a note, or an empty one.
func (w *Writer) Noted(name string) string { return w.written[name].Value }

// Unmade forgets the writes of an aspect: AWS accepted the last one, and says that it has not made it.
func (w *Writer) Unmade(aspect string) {
	if _, written := w.written[aspect]; written {
		delete(w.written, aspect)
		w.unsaved = true
	}
}

// Outdated reports whether a value that was read cannot be judged yet, where another one or the same is wanted: it may be
// one from before the last write, or it is not known whether that write was made.
func (w *Writer) Outdated(aspect, read, wanted string) bool {
	last, written := w.written[aspect]
	switch {
	case !written:
		return false
	case last.Done:
		return read != last.Value && (read == last.Read || slices.Contains(last.Earlier, read))
	default: // to make the same write again is always right
		return wanted != last.Value || read == last.Value && len(last.Earlier) > 0
	}
}

// Created reports whether a resource may be there although a read did not find it: it was created within the Lag.
func (w *Writer) Created(aspect string) bool {
	last := w.written[aspect]
	return last.Value != "" || !last.Done && slices.ContainsFunc(last.Earlier, func(value string) bool { return value != "" })
}

// Removed returns the last write of an aspect that was taken away within the Lag: the removal, or the creation since. What was made
// before that began is what was removed, although AWS may still return it.
func (w *Writer) Removed(aspect string) (last Record, is bool) {
	last, written := w.written[aspect]
	return last, written && (last.Value == "" || slices.Contains(last.Earlier, ""))
}

// Deleted reports whether a read that finds a resource is older than its deletion.
func (w *Writer) Deleted(aspect string) bool {
	last, written := w.written[aspect]
	return written && last.Done && last.Value == ""
}

// Unseen returns what may be there below a path of aspects although a read did not find it, sorted; also what was being removed by a
// call that was stopped, so that the next one completes that.
func (w *Writer) Unseen(path string) []string {
	var names []string
	for _, aspect := range slices.Sorted(maps.Keys(w.written)) {
		if name, below := strings.CutPrefix(aspect, path); below && (w.Created(aspect) || !w.written[aspect].Done) {
			names = append(names, name)
		}
	}
	return names
}

// NotShown returns a wait for a resource that was created within the Lag and is not found.
func NotShown(wait time.Duration, subject string) error {
	return outcome.Wait(wait, "AWS does not show %s, which was made less than three minutes ago", subject)
}

// Hash returns a short text that is equal only for equal values.
func Hash(value any) string {
	sum := canonical.Hash(value)
	return hex.EncodeToString(sum[:8])
}

// Read returns a value if an aspect was read as wanted, and another one if not.
func Read(asWanted bool, value string) string {
	if asWanted {
		return value
	}
	return "other"
}

// Wrap adds context to an error. It returns nil for nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// Ignore returns an error unless it is one of a kind.
func Ignore(err error, kind func(error) bool) error {
	if kind(err) {
		return nil
	}
	return err
}
