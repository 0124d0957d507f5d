package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

func exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "export RACK", Short: "Print the rack's parameters", Args: exactly("RACK"), ValidArgsFunction: completeRack,
		Long: `Prints the rack's parameters as Parameter Store has them. What json, yaml and env print, diff and apply read; terraform and
cloudformation are resources for those tools.

Exit codes: 0 printed, 1 there is no such rack, 2 wrong use, 3 Parameter Store could not be read.` + aboutCloud,
	}
	format := outputFlag(c, "json", "yaml", "env", "terraform", "cloudformation")
	c.RunE = func(c *cobra.Command, args []string) error {
		return looking(export(c.Context(), args[0], *format))
	}
	return c
}

func export(ctx context.Context, rack, format string) error {
	aws, err := account(ctx)
	if err != nil {
		return err
	}
	all, err := stored(ctx, ssm.NewFromConfig(aws), rack)
	if err != nil {
		return err
	}
	return all.write(os.Stdout, rack, format)
}

// stored reads a rack's parameters.
func stored(ctx context.Context, reader store.ParameterReader, rack string) (settings, error) {
	tree, err := store.ReadTree(ctx, reader, paths().Params(rack))
	switch {
	case err != nil:
		return nil, err
	case len(tree.Values) == 0:
		return nil, refused(fmt.Sprintf("there is no rack %s: it has no parameter below %s; check the name, the region (AWS_REGION) and the "+
			"prefix (SAWHORSE_PREFIX), or create the rack with `sawhorse register %s`", rack, paths().Params(rack), rack))
	}
	for _, name := range tree.Secure {
		warn("%s is a SecureString, which Sawhorse does not take; it is left out", name)
		delete(tree.Values, name)
	}
	return tree.Values, nil
}

// write writes the settings of a rack in a format.
func (s settings) write(to io.Writer, rack, format string) error {
	switch format {
	case "json":
		text, err := encode(s, "  ")
		if err != nil {
			return err
		}
		_, err = to.Write(text)
		return err
	case "yaml":
		return yaml.NewEncoder(to).Encode(map[string]string(s))
	case "cloudformation":
		return s.cloudFormation(to, rack)
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		var err error
		if format == "env" {
			_, err = fmt.Fprintf(to, "%s=%s\n", name, onOneLine(s[name]))
		} else {
			tier := ""
			if len(s[name]) > standard {
				tier = "  tier  = \"Advanced\"\n"
			}
			_, err = fmt.Fprintf(to, "resource \"aws_ssm_parameter\" %q {\n  name  = %s\n  type  = \"String\"\n%s  value = %s\n}\n",
				name, literal(paths().Params(rack)+"/"+name), tier, literal(s[name]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// standard is the size in bytes of the longest value that SSM takes in its standard tier, without a price.
const standard = 4096

// onOneLine returns a value as a line of a file has it: as a JSON text, if it would not be read as it is.
func onOneLine(value string) string {
	if value == strings.TrimSpace(value) && !strings.ContainsAny(value, "\n\r") && !strings.HasPrefix(value, `"`) {
		return value
	}
	quoted, _ := json.Marshal(value) // a text can always be encoded
	return string(quoted)
}

// literal returns a text as a quoted literal of Terraform's language, which is that of JSON without templates.
// https://developer.hashicorp.com/terraform/language/expressions/strings
func literal(text string) string {
	quoted, _ := encode(text, "")
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strings.TrimSpace(string(quoted)))
}

// cloudFormation writes a template with a parameter for each setting.
func (s settings) cloudFormation(to io.Writer, rack string) error {
	resources := map[string]any{}
	for name, value := range s {
		properties := map[string]any{"Name": paths().Params(rack) + "/" + name, "Type": "String", "Value": value}
		if len(value) > standard {
			properties["Tier"] = "Advanced"
		}
		resources[logical(name)] = map[string]any{"Type": "AWS::SSM::Parameter", "Properties": properties}
	}
	text, err := encode(map[string]any{"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}, "  ")
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	return err
}

// logical returns the logical ID of a parameter, which has letters and digits only.
func logical(name string) (id string) {
	for word := range strings.SplitSeq(name, "_") {
		if word != "" {
			id += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return id
}
