package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// settings are parameters by name, as texts. The empty text and the word unset mean the default.
type settings map[string]string

// readSettings reads the settings of a file: a JSON object, YAML, or lines name=value. The values of parameters that take JSON
// may be written as JSON or YAML instead of text. Unknown names are errors.
func readSettings(text []byte) (settings, error) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	var all settings
	var err error
	if equals(text) {
		all, err = assignments(text)
	} else {
		all, err = mapping(text)
	}
	if err != nil {
		return nil, err
	}
	var unknown []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, known := params.Lookup(name); !known {
			unknown = append(unknown, errors.New(unknownParameter(name)))
		}
	}
	return all, errors.Join(unknown...)
}

// equals reports whether a file has lines name=value: its first line that is no comment has the = before any other mark.
func equals(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		at := strings.IndexAny(line, "=:{[\"' \t")
		return at > 0 && strings.HasPrefix(strings.TrimSpace(line[at:]), "=")
	}
	return true // it has only comments
}

// assignments reads lines name=value. A value in double quotes is a JSON text, in which \n stands for a new line.
func assignments(text []byte) (settings, error) {
	all, number := settings{}, 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found {
			return nil, fmt.Errorf("line %d is %s; allowed are name=value, a comment that begins with #, and an empty line",
				number, params.Quoted(line))
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if strings.HasPrefix(value, `"`) {
			if err := json.Unmarshal([]byte(value), &value); err != nil {
				return nil, fmt.Errorf("line %d: the value of %s begins with a quote and is no JSON text: %w; leave the quotes out", number, name, err)
			}
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice; keep one of them", number, name)
		}
		all[name] = value
	}
	return all, nil
}

// mapping reads YAML, of which JSON is a part: a mapping of names and values. Scalars are taken as they are written.
func mapping(text []byte) (settings, error) {
	var root yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it cannot be read as JSON, YAML or lines name=value: %w", err)
	}
	if err := documents.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its first document; keep one document")
	}
	all := settings{}
	if len(root.Content) == 0 {
		return all, nil
	}
	named := root.Content[0]
	if named.Kind != yaml.MappingNode {
		return nil, errors.New("it has no names; write {\"karpenter_enabled\": \"true\"}, karpenter_enabled: true, or karpenter_enabled=true")
	}
	for i := 0; i+1 < len(named.Content); i += 2 {
		name, node := named.Content[i].Value, named.Content[i+1]
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice; keep one of them", named.Content[i].Line, plain(name))
		}
		value, err := textOf(node)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", node.Line, plain(name), err)
		}
		all[name] = value
	}
	return all, nil
}

// textOf returns the text of a value: a scalar as it is written, anything else as JSON.
func textOf(node *yaml.Node) (string, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind == yaml.ScalarNode {
		if node.Tag == "!!null" {
			return "", errors.New("it has no value; write unset for the default, or leave the name out")
		}
		return node.Value, nil
	}
	undated(node)
	var value any
	if err := node.Decode(&value); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return string(text), nil
}

// undated makes texts of dates: JSON has none, and YAML would give them a time.
func undated(node *yaml.Node) {
	if node.ShortTag() == "!!timestamp" {
		node.Tag = "!!str"
	}
	for _, inner := range node.Content {
		undated(inner)
	}
}

// normal returns a value as it is compared: the empty text is unset, and JSON has no white space and sorted keys. JSON with a flaw stays as
// it is, so that it is judged as it is written.
func normal(text string) string {
	if text == "" {
		return params.Unset
	}
	if trimmed := strings.TrimSpace(text); (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && params.IsJSON(text) {
		var value any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&value) == nil {
			return string(canonical.JSON(value))
		}
	}
	return text
}
