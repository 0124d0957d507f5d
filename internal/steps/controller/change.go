package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const (
	// changeTime is how long another version of Karpenter may take until it is installed, and after that until it works. It
	// counts across passes. backTime is how long the version before may then take. Together they are within the step's deadline.
	changeTime = 10 * time.Minute
	backTime   = 4 * time.Minute
	// upgradeTime is longer than the objects of a version take to be applied, so that pods that were made during one count as new ones.
	upgradeTime = 30 * time.Second
	// longestReason is the length in bytes of a recorded reason, and longestLog that of the end of the controller's log
	// behind it. The status must have room for the warning about both.
	longestReason = 300
	longestLog    = 400
	// attemptKey names the record of an attempt.
	attemptKey = "controller/change"
)

// Versions records what is known about the Karpenter of a rack.
type Versions interface {
	// Records returns the rack's records, whose Karpenter is zero if none is recorded.
	Records(ctx context.Context, rack string) (plan.Records, error)
	// NoteKarpenter replaces the record in one write.
	NoteKarpenter(ctx context.Context, rack string, record plan.KarpenterRecord) error
}

// attempt is the record of a change of Karpenter's version. Calls of the step may be stopped anywhere, and passes too, so
// it has all that a later one must know.
type attempt struct {
	// Version is the version that the attempt goes to, and Write the version of the parameter that asks for it.
	Version string `json:"version"`
	Write   int64  `json:"write,omitempty"`
	// Generation is that of the plan that made the attempt, or that went back.
	Generation int64 `json:"generation,omitempty"`
	// Began is when the attempt began, and Installed when the release was first found to be that of the version.
	Began     time.Time `json:"began"`
	Installed time.Time `json:"installed,omitzero"`
	// Ready has the subjects of the NodePools and EC2NodeClasses that were Ready before the first change.
	Ready []string `json:"ready,omitempty"`
	// Replaced is when all pods of the controller were first found to be new ones. It is zero until then.
	Replaced time.Time `json:"replaced,omitzero"`
	// Failure says why the version failed. It is empty until the way back begins, at the time Failed.
	Failure string    `json:"failure,omitempty"`
	Failed  time.Time `json:"failed,omitzero"`
}

// attempt returns the recorded attempt, or nil if there is none.
func (r *run) attempt(ctx context.Context) (*attempt, error) {
	return outcome.Recorded[attempt](ctx, r.Checkpoints, r.plan.Rack, attemptKey)
}

func (r *run) save(ctx context.Context, at *attempt) error {
	return outcome.Record(ctx, r.Checkpoints.Replace, r.plan.Rack, attemptKey, at)
}

// note changes what is known about the rack's Karpenter, and returns it. It writes only if that differs.
func (r *run) note(ctx context.Context, change func(*plan.KarpenterRecord)) (plan.KarpenterRecord, error) {
	records, err := r.Versions.Records(ctx, r.plan.Rack)
	record := records.Karpenter
	if err != nil {
		return record, err
	}
	was := record
	if change(&record); record == was {
		return record, nil
	}
	return record, r.Versions.NoteKarpenter(ctx, r.plan.Rack, record)
}

// changing reports whether the plan is for another version than the one in force. The answer of the call that completed the
// change may have been lost.
func (r *run) changing(ctx context.Context, at *attempt) (bool, error) {
	if r.plan.Controller.Previous == nil || at != nil {
		return r.plan.Controller.Previous != nil, nil
	}
	records, err := r.Versions.Records(ctx, r.plan.Rack)
	return records.Karpenter.Version != r.plan.Controller.Release.Version, err
}

// change brings the controller to another version than the one in force, and back if that version does not work.
func (r *run) change(ctx context.Context, at *attempt) error {
	if r.begins(at) {
		var err error
		if at, err = r.begin(ctx, at); err != nil {
			return err
		}
	}
	if at.Failure != "" {
		return r.back(ctx, at)
	}
	if err := r.install(ctx, r.plan.Controller.Release); err != nil {
		if lasting(err) && r.late(at.Began) {
			return r.fail(ctx, at, outcome.ShortenTo(longestReason, err.Error()))
		}
		return err
	}
	if at.Installed.IsZero() {
		at.Installed = r.Now().UTC()
		if err := r.save(ctx, at); err != nil {
			return err
		}
	}
	found, err := r.works(ctx, at, at.Version)
	switch {
	case err != nil:
		return err
	case found == finding{}:
		return r.inForce(ctx)
	case found.failed != "":
		return r.fail(ctx, at, outcome.ShortenTo(longestReason, found.failed)+r.logged(ctx, at))
	case found.trouble != "" && r.late(at.Installed):
		return r.fail(ctx, at, outcome.ShortenTo(longestReason, found.trouble)+r.logged(ctx, at))
	}
	return outcome.Wait(poll, "%s", found.note())
}

// late reports whether a change that is under way since a time has had its time.
func (r *run) late(since time.Time) bool { return !r.Now().Before(since.Add(changeTime)) }

// begins reports whether the plan asks for another attempt than the recorded one. A plan that asks again for a version that
// failed was made by a request with force.
func (r *run) begins(at *attempt) bool {
	return at == nil || at.Version != r.plan.Controller.Release.Version || at.Write != r.plan.Controller.Write ||
		at.Failure != "" && at.Generation != r.plan.Generation
}

// begin records an attempt. If one before it is not complete, the pools that were Ready before that one count.
func (r *run) begin(ctx context.Context, before *attempt) (*attempt, error) {
	at := &attempt{
		Version: r.plan.Controller.Release.Version, Write: r.plan.Controller.Write, Generation: r.plan.Generation, Began: r.Now().UTC(),
	}
	if before != nil {
		at.Ready = before.Ready
	} else {
		var err error
		if at.Ready, err = r.readyPools(ctx); err != nil {
			return nil, err
		}
	}
	// If the pass is stopped, the next one goes on with this version, also without force.
	if _, err := r.note(ctx, func(record *plan.KarpenterRecord) { record.RolledBack = nil }); err != nil {
		return nil, err
	}
	return at, r.save(ctx, at)
}

// fail records that a version does not work, and begins the way back. The record of the rack comes first: if the call is
// stopped after it, no pass tries the version again.
func (r *run) fail(ctx context.Context, at *attempt, reason string) error {
	failed := &plan.RolledBack{Version: at.Version, Reason: reason, Write: at.Write, Generation: r.plan.Generation}
	if _, err := r.note(ctx, func(record *plan.KarpenterRecord) { record.RolledBack = failed }); err != nil {
		return err
	}
	at.Failure, at.Failed, at.Generation, at.Replaced = reason, r.Now().UTC(), r.plan.Generation, time.Time{}
	if err := r.save(ctx, at); err != nil {
		return err
	}
	return r.back(ctx, at)
}

// back brings the objects of the version before back. Then it fails the pass
// with the reason. The record of the attempt is kept, so that a repeated call has the same end.
func (r *run) back(ctx context.Context, at *attempt) error {
	previous := *r.plan.Controller.Previous
	if err := r.install(ctx, previous); err != nil {
		return err
	}
	found, err := r.works(ctx, at, previous.Version)
	if err != nil {
		return err
	}
	note := found.note()
	if note != "" && r.Now().Before(at.Failed.Add(backTime)) {
		return outcome.Wait(poll, "Karpenter %s failed (%s), and %s comes back: %s", at.Version, at.Failure, previous.Version, note)
	}
	again := "which works again"
	if note != "" {
		again = outcome.NeitherWorks + " (" + note + ")"
	}
	return fmt.Errorf("release %s: Karpenter %s failed, %s %s, %s: %s",
		ownership.ReleaseController, at.Version, outcome.TookBack, previous.Version, again, at.Failure)
}

// inForce records the version of a controller that works, and that its attempt is over.
func (r *run) inForce(ctx context.Context) error {
	version, previous := r.plan.Controller.Release.Version, r.plan.Controller.Previous
	record, err := r.note(ctx, func(record *plan.KarpenterRecord) {
		if record.Version != version {
			record.Before, record.Version = record.Version, version
		}
		if record.RolledBack != nil && (previous != nil || record.RolledBack.Version == version) {
			record.RolledBack = nil
		}
	})
	if err != nil {
		return err
	}
	r.progress.Outputs = map[string]string{"karpenter_version": record.Version, "karpenter_version_before": record.Before}
	return outcome.ForgetIfRecorded(ctx, r.Checkpoints, r.plan.Rack, attemptKey)
}

// uninstalled records that the rack runs no Karpenter. Its CRDs stay.
func (r *run) uninstalled(ctx context.Context) error {
	_, err := r.note(ctx, func(record *plan.KarpenterRecord) {
		// Until the removal is complete, its plans are for the version that was planned last.
		*record = plan.KarpenterRecord{Planned: record.Planned, CRDs: record.CRDs}
	})
	if err != nil {
		return err
	}
	r.progress.Outputs = map[string]string{"karpenter_version": "", "karpenter_version_before": ""}
	return outcome.ForgetIfRecorded(ctx, r.Checkpoints, r.plan.Rack, attemptKey)
}

// lasting reports whether an error will stay if the call is repeated: one of the objects, and not of the API server or of
// the connection to it.
func lasting(err error) bool {
	return !errors.As(err, new(net.Error)) && !outcome.IsNotYet(err, outcome.Unready) && !outcome.IsNotYet(err, outcome.Throttled) &&
		!errors.As(err, new(*outcome.Unreachable)) && !errors.As(err, new(*outcome.Rejected)) && !outcome.IsNotYet(err, outcome.Waiting)
}

// finding says how far a version of the controller works.
type finding struct {
	// trouble says what is not as it should be, and wait what only takes its time.
	trouble, wait string
	// failed says what will not get better by itself.
	failed string
}

func (f finding) note() string {
	return cmp.Or(f.trouble, f.wait)
}

// works looks whether the pods of a version are Ready, and whether the pools are that were Ready before.
func (r *run) works(ctx context.Context, at *attempt, version string) (finding, error) {
	var waiting *outcome.NotYet
	switch err := r.rollout(ctx); {
	case errors.As(err, &waiting):
		pods, err := r.newPods(ctx, at)
		return finding{trouble: waiting.Note, failed: strings.Join(k8s.PodFailures(pods, r.Now()), "; ")}, err
	case err != nil:
		return finding{}, err
	}
	release, err := karpenter.Find(version)
	if err != nil {
		return finding{}, err
	}
	return r.poolsWork(ctx, at, release)
}

// logged returns what the logs of the new pods say of the reason, as more of a sentence. They go with their pods, and a panic
// that Karpenter survives stands nowhere else.
func (r *run) logged(ctx context.Context, at *attempt) string {
	pods, err := r.newPods(ctx, at)
	if err != nil {
		return ""
	}
	for i := range pods {
		if lines := r.client.LogErrors(ctx, &pods[i]); len(lines) > 0 {
			return "; the last errors in the log of pod " + pods[i].Name + ": " + outcome.ShortenTo(longestLog, strings.Join(lines, "; "))
		}
	}
	return ""
}

// newPods lists the controller's pods of a version that is being tried.
func (r *run) newPods(ctx context.Context, at *attempt) ([]corev1.Pod, error) {
	deployment, err := r.client.Get(ctx, k8s.Deployment, ownership.Namespace, ownership.ReleaseController)
	if err != nil || deployment == nil {
		return nil, err
	}
	return r.client.NewPods(ctx, deployment, at.Installed.Add(-upgradeTime))
}
