package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

func paramsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "params", Short: "List every parameter", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Prints the name, type, default, pattern and meaning of each parameter.",
	}
	format := outputFlag(c, "markdown", "json")
	c.RunE = func(*cobra.Command, []string) error {
		if *format == "json" {
			return printJSON(params.Table)
		}
		_, err := io.WriteString(os.Stdout, params.Markdown())
		return err
	}
	return c
}
