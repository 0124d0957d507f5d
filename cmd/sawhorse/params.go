package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

func runParams(_ context.Context, args []string) error {
	const use = "sawhorse params [-o markdown|json]"
	flags := flag.NewFlagSet("params", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	format := flags.String("o", "markdown", "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return usage{use}
	}
	switch *format {
	case "markdown":
		_, err := io.WriteString(os.Stdout, params.Markdown())
		return err
	case "json":
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(params.Table)
	default:
		return usage{fmt.Sprintf("%s: not %q", use, *format)}
	}
}
