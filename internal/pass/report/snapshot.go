package report

import (
	"context"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// snapshot keeps the values of a rack that is Reconciled, if they are others than those of its last snapshot. It adds the snapshot to
// the status and to the record of the report.
func (r *Report) snapshot(ctx context.Context, run store.Run, status *store.Status, reported *store.Reported) error {
	if status.State == outcome.StateReconciled && run.Values != "" && run.Values != reported.Values {
		settings, err := r.Store.Settings(ctx, status.Rack)
		switch {
		case err != nil:
			return err
		case settings == nil || settings.Of != run.Values: // those of another pass: the next one finds that there is no snapshot
		case settings.Size > 0:
			reported.Values = run.Values
			addIncident(status, params.NewProblem("rack", "", "the values of this generation are kept as no snapshot: they have %d bytes "+
				"compressed, and there is room for %d; shorten the longest JSON", settings.Size, store.MostValues))
		default:
			if err := r.addSnapshot(ctx, run, *status, *settings, reported); err != nil {
				return err
			}
		}
	}
	if reported.Snapshot > 0 {
		status.Snapshot = &store.SnapshotRef{Number: reported.Snapshot, Table: r.Store.Name}
	}
	return nil
}

// addIncident adds a warning that only this pass has.
func addIncident(status *store.Status, warning params.Problem) {
	status.Warnings, status.Incidents = append(status.Warnings, warning), append(status.Incidents, warning)
}

// addSnapshot adds a snapshot, unless the last one has these values: then an earlier call was stopped after it had added it.
func (r *Report) addSnapshot(
	ctx context.Context, run store.Run, status store.Status, settings store.Settings, reported *store.Reported,
) error {
	last, err := r.Store.LastSnapshot(ctx, status.Rack)
	if err != nil {
		return err
	}
	if last != nil {
		if err := r.Store.CompleteSnapshot(ctx, status.Rack, *last); err != nil {
			return err
		}
	}
	if last == nil || last.Digest() != settings.Of {
		next := store.Snapshot{Values: settings.Values, Summary: store.Summary{
			Number: 1, Time: r.Now().UTC(), Generation: status.Generation, Karpenter: status.Karpenter, Pools: run.Effects,
			Changed: []store.Changed{},
		}}
		next.Nodes, next.More = replaced(run.Effects)
		if last != nil {
			next.Number = last.Number + 1
			r.attribute(ctx, &next.Summary, last.Differ(settings.Values), run.Versions, settings)
		}
		if err := r.Store.AddSnapshot(ctx, status.Rack, next); err != nil {
			return err
		}
		if err := r.Store.PruneSnapshots(ctx, status.Rack, next.Number, r.Now()); err != nil {
			return err
		}
		last = &next
	}
	reported.Values, reported.Snapshot = settings.Of, last.Number
	return nil
}

// replaced returns how many nodes Karpenter replaces for effects on pools, and whether it may be more.
func replaced(effects []plan.Effect) (nodes int, more bool) {
	for _, e := range effects {
		switch {
		case e.Replaced != nil:
			nodes += *e.Replaced
		case e.Replaces && e.Nodes != nil:
			nodes += *e.Nodes
		case e.Replaces:
			more = true
		}
		more = more || e.MayReplace
	}
	return nodes, more
}

// attribute adds what has changed, and who wrote it: for what a change wrote, who wrote the change.
func (r *Report) attribute(ctx context.Context, to *store.Summary, changed []string, versions map[string]int64, settings store.Settings) {
	var notes []string
	writers := writers{}
	for _, name := range changed {
		place, version := r.Outputs.Paths.Params(settings.Rack)+"/"+name, versions[name]
		for _, change := range settings.Changes {
			if wrote, is := change.Names[name]; !is || wrote != version {
				continue
			}
			place, version = r.Outputs.Paths.Change(settings.Rack), change.Version
			if change.Note != "" && !slices.Contains(notes, change.Note) {
				notes = append(notes, change.Note)
			}
			break
		}
		to.Changed = append(to.Changed, store.Changed{Parameter: name, By: writers.of(ctx, r.Outputs.SSM, place, version)})
	}
	to.Note = strings.Join(notes, "; ")
}

// writers are who wrote the versions of parameters, by the parameter's name.
type writers map[string]map[int64]string

// mostWriters is for how many parameters Parameter Store is asked who wrote them. It answers few such calls a second.
const mostWriters = 20

// of returns who wrote a version of a parameter, or "" if Parameter Store does not say. A snapshot without it is better than none.
func (w writers) of(ctx context.Context, reader store.ChangeReader, name string, version int64) string {
	if w[name] == nil && len(w) < mostWriters {
		w[name] = map[int64]string{}
		if history, err := store.ReadHistory(ctx, reader, name); err == nil {
			for _, v := range history {
				w[name][v.Number] = v.By
			}
		}
	}
	return w[name][version]
}
