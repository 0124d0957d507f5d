package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

// completing is how long a shell waits for AWS when it completes a word.
const completing = 3 * time.Second

// completeRack completes the name of a rack as the first argument. Whoever may not list them completes it alone.
func completeRack(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, done := context.WithTimeout(c.Context(), completing)
	defer done()
	loaded, err := account(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := rackNames(ctx, ssm.NewFromConfig(loaded)) // a part of them is better than none
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSnapshot completes a rack and then one of its snapshots.
func completeSnapshot(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return completeRack(c, args, word)
	}
	return snapshotsOf(c, args[0], ""), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// snapshotsOf returns the numbers of a rack's snapshots after a beginning, each with its time and note.
func snapshotsOf(c *cobra.Command, rack, begins string) (all []cobra.Completion) {
	ctx, done := context.WithTimeout(c.Context(), completing)
	defer done()
	w, err := newWatcher(ctx, rack)
	if err != nil {
		return nil
	}
	records, _, err := w.snapshots(ctx)
	if err != nil {
		return nil
	}
	summaries, _ := store.History(ctx, records, rack, false)
	for _, s := range summaries {
		about := strings.TrimSpace(s.Time.Format(time.RFC3339) + " " + plain(s.Note))
		all = append(all, cobra.CompletionWithDesc(fmt.Sprint(begins, s.Number), about))
	}
	return all
}
