package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

func racksCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "racks", Short: "List the racks with their state, version and nodes", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Lists the racks that have parameters in Parameter Store, with what their statuses say.

Exit codes: 0 listed, whatever the states are; 2 wrong use; 3 Parameter Store, or the status of a rack, could not be read.` + aboutCloud,
	}
	format := outputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, _ []string) error { return looking(listRacks(c.Context(), *format)) }
	return c
}

func listRacks(ctx context.Context, format string) error {
	aws, err := account(ctx, config.WithRetryMaxAttempts(patientAttempts))
	if err != nil {
		return err
	}
	client := ssm.NewFromConfig(aws)
	names, err := rackNames(ctx, client)
	if err != nil {
		return err
	}
	all, hidden := make([]standing, len(names)), 0
	for i, name := range names {
		all[i].Rack = name
		if all[i].Status, err = (&watcher{ssm: client, rack: name}).readStatus(ctx); err != nil {
			all[i].Unknown = err.Error()
			warn("rack %s: %v", name, err)
			hidden++
		}
	}
	if format == "json" {
		err = printJSON(all)
	} else {
		err = tabulate(os.Stdout, all)
	}
	switch {
	case err != nil:
		return err
	case hidden > 0:
		return undecided(fmt.Sprintf("the status of %d of %d racks could not be read", hidden, len(all)))
	case len(all) == 0:
		warn("there is no rack below %s in %s; `sawhorse register RACK` creates one", paths().Racks(), aws.Region)
	}
	return nil
}

// rackNames lists the racks by the names of their parameters: the right to list names covers all racks, that to read values may not.
func rackNames(ctx context.Context, client ssm.DescribeParametersAPIClient) (names []string, err error) {
	pages := ssm.NewDescribeParametersPaginator(client, &ssm.DescribeParametersInput{
		MaxResults: new(int32(50)), ParameterFilters: []types.ParameterStringFilter{
			{Key: new("Path"), Option: new("Recursive"), Values: []string{paths().Racks()}},
		},
	})
	waiting := newProgress()
	defer waiting.end()
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("parameters below %s: list: %w", paths().Racks(), err)
		}
		for _, p := range page.Parameters {
			name, _, _ := strings.Cut(strings.TrimPrefix(*p.Name, paths().Racks()+"/"), "/")
			if rackName(name) == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		waiting.say(fmt.Sprintf("listing parameters, %d racks so far", len(names)))
	}
	slices.Sort(names)
	return names, nil
}

// tabulate prints racks as a table.
func tabulate(to io.Writer, racks []standing) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if len(racks) > 0 {
		fmt.Fprintln(table, "RACK\tSTATE\tGENERATION\tTIME\tKARPENTER\tNODES")
	}
	for _, r := range racks {
		switch s := r.Status; {
		case r.Unknown != "":
			fmt.Fprintf(table, "%s\tunknown\t-\t-\t-\t-\n", r.Rack)
		case s == nil:
			fmt.Fprintf(table, "%s\tno status yet\t-\t-\t-\t-\n", r.Rack)
		default:
			version := "off"
			if s.Rollout != nil {
				version = s.Karpenter
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", r.Rack, s.State, s.Generation, s.Time, version, ofPools(*s))
		}
	}
	return table.Flush()
}

// ofPools returns the number of nodes in all pools of a rack. A status that left something out may have left out pools.
func ofPools(s store.Status) string {
	nodes := 0
	for _, p := range s.Pools {
		nodes += p.Nodes
	}
	text := fmt.Sprint(nodes)
	if s.Omitted > 0 {
		text = "at least " + text
	}
	if outdated := s.Pools.Outdated(); outdated > 0 {
		text += fmt.Sprintf(", %d outdated", outdated)
	}
	return text
}
