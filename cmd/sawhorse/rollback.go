package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

func rollbackCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rollback RACK SNAPSHOT", Short: "Go back to a snapshot of the rack, as one change", ValidArgsFunction: completeSnapshot,
		Long: `Prints what differs from the snapshot and what going back does to nodes, asks on a terminal, sets what the snapshot had and unsets
what it had not, as one change, and follows the passes until it is done. A JSON that was in S3 is put there again, beside where it was and
under its hash. That makes a new snapshot, so that it can be taken back in the same way. Left out unless --include names
them: ` + strings.Join(lasting, ", ") + `.

Exit codes: 0 done, or nothing differs; 1 refused, failed, or not confirmed; 2 wrong use; 3 not known.` + aboutCloud,
		Args: rackAndSnapshot,
	}
	var how application
	include := c.Flags().StringSlice("include", nil, "also go back with `NAME`, one of those that are left out")
	c.Flags().BoolVar(&how.dryRun, "dry-run", false, "only print what would be done, as a dry pass judges it")
	c.Flags().BoolVar(&how.yes, "yes", false, "do not ask; needed where there is no terminal")
	format := outputFlag(c, "text", "json")
	c.Flags().StringVar(&how.note, "note", "", "`TEXT` that the history shows with the change; it says to which snapshot without one")
	if err := c.RegisterFlagCompletionFunc("include", cobra.FixedCompletions(lasting, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // only if the flag does not exist
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		number, _ := strconv.ParseInt(args[1], 10, 64) // rackAndSnapshot has read it
		for _, name := range *include {
			if !slices.Contains(lasting, name) {
				return misused("--include is %s; allowed are %s", params.Quoted(name), strings.Join(lasting, ", "))
			}
		}
		how.json = *format == "json"
		w, err := newWatcher(c.Context(), args[0])
		if err != nil {
			return looking(err)
		}
		how.note = cmp.Or(how.note, "rollback to snapshot "+args[1])
		p, objects, err := w.back(c.Context(), number, *include)
		if err != nil {
			return looking(err)
		}
		return w.carry(c.Context(), p, how, objects)
	}
	return c
}

// rackAndSnapshot checks that the arguments are a rack's name and the number of a snapshot.
func rackAndSnapshot(c *cobra.Command, args []string) error {
	if err := exactly("RACK", "SNAPSHOT")(c, args); err != nil {
		return err
	}
	_, err := snapshotNumber(args[1])
	return err
}

func snapshotNumber(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 {
		return 0, fmt.Errorf("the snapshot is %s; allowed is a number that `sawhorse history` lists", params.Quoted(text))
	}
	return number, nil
}

// back proposes the change that goes back to a snapshot, with the texts that are to be put into S3 before it, by URI.
func (w *watcher) back(ctx context.Context, number int64, include []string) (proposal, map[string]string, error) {
	p := proposal{Rack: w.rack, Differs: []difference{}}
	records, status, err := w.snapshots(ctx)
	if err != nil {
		return p, nil, err
	}
	to, err := w.snapshot(ctx, records, number)
	if err != nil {
		return p, nil, err
	}
	now, err := w.snapshot(ctx, records, status.Snapshot.Number)
	if err != nil {
		return p, nil, err
	}
	tree, err := store.ReadTree(ctx, w.ssm, paths().Params(w.rack))
	if err != nil {
		return p, nil, err
	}
	wanted, objects := settings{}, map[string]string{}
	for name, value := range tree.Values {
		if wanted[name] = params.Unset; value == params.Default {
			wanted[name] = value
		}
	}
	for name, value := range to.Params {
		wanted[name] = value
		same := inForce(status) && tree.Values[name] == value && now.Text(name) == to.Text(name)
		if text, is := to.Objects[strings.TrimSpace(value)]; is && !same {
			wanted[name] = underHash(strings.TrimSpace(value), text)
			objects[wanted[name]] = text
		}
	}
	for _, name := range lasting {
		is, was := lasted(name, tree.Values[name], now), lasted(name, wanted[name], to)
		if is != was && normal(wanted[name]) == params.Unset {
			wanted[name] = was // unset would leave it as it is
		}
		if slices.Contains(include, name) {
			continue
		}
		if is != was {
			p.Kept = append(p.Kept,
				fmt.Sprintf("%s: it stays %s, and snapshot %d has %s; --include %s goes back with it", name, is, number, was, name))
		}
		delete(wanted, name)
	}
	if err := w.compare(ctx, &p, tree, wanted, objects); err != nil {
		return p, nil, err
	}
	maps.DeleteFunc(objects, func(uri, _ string) bool {
		return !slices.ContainsFunc(p.Differs, func(d difference) bool { return d.Then == uri })
	})
	return p, objects, nil
}

// lasted returns the value that a parameter had in a snapshot, which is one of those that are not unset by the way. Where it was not
// written, Karpenter stays on, or off, and its version the same; a snapshot has the cluster's name, also if it is the default.
func lasted(name, written string, in *store.Snapshot) string {
	if written = normal(written); written != params.Unset {
		return written
	}
	switch name {
	case "karpenter_enabled":
		return strconv.FormatBool(in.Karpenter != "")
	case params.ParamVersion:
		return cmp.Or(in.Karpenter, params.Unset)
	}
	return cmp.Or(in.Params[name], params.Unset)
}

// underHash returns the place for a text beside the object in which it was.
func underHash(uri, text string) string {
	sum := sha256.Sum256([]byte(text))
	bucket, key, _ := strings.Cut(strings.TrimPrefix(uri, "s3://"), "/")
	return "s3://" + path.Join(bucket, path.Dir(key), hex.EncodeToString(sum[:])+".json")
}

// upload puts texts into S3.
func (w *watcher) upload(ctx context.Context, objects map[string]string) error {
	client := s3.NewFromConfig(w.aws)
	for _, uri := range slices.Sorted(maps.Keys(objects)) {
		bucket, key, _ := strings.Cut(strings.TrimPrefix(uri, "s3://"), "/")
		_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader([]byte(objects[uri]))})
		if err != nil {
			return fmt.Errorf("%s: write: %w; it needs s3:PutObject with your rights, and nothing else was written", uri, err)
		}
		fmt.Fprintf(os.Stderr, "put %s\n", uri)
	}
	return nil
}
