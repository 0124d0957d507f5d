package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

func runParams(_ context.Context, use string, args []string) error {
	flags := flag.NewFlagSet("params", flag.ContinueOnError)
	format := flags.String("o", "markdown", "")
	if rest, err := parse(flags, use, args); err != nil {
		return err
	} else if len(rest) > 0 {
		return usage{use: use}
	}
	switch *format {
	case "markdown":
		_, err := io.WriteString(os.Stdout, params.Markdown())
		return err
	case "json":
		return printJSON(params.Table, "  ")
	default:
		return usage{use, fmt.Sprintf("-o %s is no format", *format)}
	}
}
