package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// built is the version that the Makefile sets with -ldflags. `go install` of a module version sets the build
// information instead.
var built string

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(built, "unknown")
	}
	return cmp.Or(built, info.Main.Version, "unknown")
}

// versions is the JSON output of version.
type versions struct {
	Version string `json:"version"`
	// Karpenter is the version of a rack that chooses none, Kubernetes the versions that it is for, such as "1.26 to 1.35".
	Karpenter  string `json:"karpenter"`
	Kubernetes string `json:"kubernetes"`
}

func versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the versions of sawhorse and of its Karpenter", Args: cobra.NoArgs,
		Long: "Prints the version of this command, of the Karpenter that Sawhorse of this version installs, and the Kubernetes\n" +
			"versions that it is for.",
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	format := outputFlag(c, "text", "json")
	c.RunE = func(*cobra.Command, []string) error {
		karpenter := plan.Target(params.Config{}, plan.Facts{})
		v := versions{version(), karpenter.Version, karpenter.Kubernetes.String()}
		if *format == "json" {
			return printJSON(v)
		}
		fmt.Printf("sawhorse   %s\nKarpenter  %s\nKubernetes %s\n", v.Version, v.Karpenter, v.Kubernetes)
		return nil
	}
	return c
}
