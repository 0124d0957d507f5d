package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// answer is the JSON output of check.
type answer struct {
	Accepted bool             `json:"accepted"`
	Problems []params.Problem `json:"problems"`
	Warnings []params.Problem `json:"warnings"`
}

func answerOf(problems, warnings []params.Problem) answer {
	return answer{len(problems) == 0, append([]params.Problem{}, problems...), append([]params.Problem{}, warnings...)}
}

// unreadable is the answer to a line of a batch that is not a valid input.
func unreadable(err error) answer {
	return answerOf([]params.Problem{{Parameter: "input", Message: err.Error()}}, nil)
}

func checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check FILE|-", Short: "Check whether parameters would be accepted", Args: exactly("FILE"),
		Long: aboutInput + `Prints {"accepted", "problems", "warnings"} or, with -o text, a line for each problem and warning.` + aboutExit,
	}
	validates(c, "text", check, func(made any, accepted bool, format string) error {
		if format == "json" {
			return printJSON(made)
		}
		tell(os.Stdout, made.(answer))
		if accepted {
			fmt.Println("accepted")
		} else {
			fmt.Println("refused")
		}
		return nil
	})
	return c
}

// validates makes a command validate one input and show what comes of it, as JSON or in another format. With --batch it
// validates each line of many, and prints JSON.
func validates(c *cobra.Command, other string, validate func(input) (made any, accepted bool),
	show func(made any, accepted bool, format string) error) {
	batch := c.Flags().Bool("batch", false,
		"read one object a line and print one answer a line, in the same order; an empty line has no answer")
	format := outputFlag(c, "json", other)
	c.RunE = func(_ *cobra.Command, args []string) error {
		switch {
		case *batch && *format != "json":
			return misused("--batch prints one JSON value a line; leave out -o %s", *format)
		case *batch:
			return each(args[0], os.Stdout, validate)
		}
		return once(args[0], func(in input) (bool, error) {
			made, accepted := validate(in)
			return accepted, show(made, accepted, *format)
		})
	}
}

func check(in input) (any, bool) {
	v := in.result()
	return answerOf(v.Problems, v.Warnings), len(v.Problems) == 0
}

func renderCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "render FILE|-", Short: "Print the NodePools, EC2NodeClasses and NodeOverlays", Args: exactly("FILE"),
		Long: aboutInput + `Prints the manifests in order of kind and name; none where Karpenter is off. The problems of a ` +
			`refused input go to stderr;
with --batch they are that line's answer. With --explain it prints for each field of each manifest where its value comes from: a
parameter with the path in its JSON, or a built-in default.` + aboutExit,
	}
	explain := c.Flags().Bool("explain", false, "print which parameter, field or config each value comes from")
	validate := func(in input) (any, bool) {
		if *explain {
			return layers(in)
		}
		return render(in)
	}
	validates(c, "yaml", validate, func(made any, accepted bool, format string) error {
		switch explained, is := made.([]nodes.Explanation); {
		case is && format == "yaml":
			for _, e := range explained {
				fmt.Print(e)
			}
			return nil
		case !accepted:
			tell(os.Stderr, made.(answer))
			return nil
		case format == "json":
			return printJSON(made)
		}
		return printYAML(made.([]plan.Object))
	})
	return c
}

// render returns the manifests of an input, or the answer of check if the input is rejected.
func render(in input) (any, bool) {
	v := in.result()
	if len(v.Problems) > 0 {
		return answerOf(v.Problems, v.Warnings), false
	}
	return append([]plan.Object{}, v.Plan.NodePools.Manifests()...), true
}

// layers returns where the values of an input's manifests come from, or the answer of check if the input is rejected.
func layers(in input) (any, bool) {
	judged := in.judged(in.applied())
	v := validation.Validate(judged)
	if len(v.Problems) > 0 {
		return answerOf(v.Problems, v.Warnings), false
	}
	return nodes.Compile(v.Config, judged.Facts).Explain(), true
}

// once validates one file. An input that cannot be read is wrong use.
func once(name string, validate func(input) (accepted bool, err error)) error {
	text, err := readFile(name)
	if err != nil {
		return unusable{err}
	}
	in, err := readInput(text)
	if err != nil {
		return unusable{fmt.Errorf("%s: %w", called(name), err)}
	}
	accepted, err := validate(in)
	if err == nil && !accepted {
		err = refused("")
	}
	return err
}

// tell prints problems and warnings as text, each on one line.
func tell(w io.Writer, a answer) {
	for _, p := range a.Problems {
		fmt.Fprintf(w, "problem  %s\n", line(p))
	}
	for _, p := range a.Warnings {
		fmt.Fprintf(w, "warning  %s\n", line(p))
	}
}

// line returns a problem on one line.
func line(p params.Problem) string {
	name := plain(p.Parameter)
	if p.Path == "" {
		return name + ": " + p.Message
	}
	return name + " " + p.Path + ": " + p.Message
}

func printJSON(value any) error {
	text, err := encode(value, "  ")
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

func encode(value any, indent string) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	err := encoder.Encode(value)
	return out.Bytes(), err
}

func printYAML(objects []plan.Object) error {
	var documents []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		documents = append(documents, string(text))
	}
	_, err := fmt.Print(strings.Join(documents, "---\n"))
	return err
}
