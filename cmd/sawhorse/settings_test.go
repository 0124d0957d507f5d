package main

import (
	"bytes"
	"maps"
	"strings"
	"testing"
)

func TestReadSettings(t *testing.T) {
	t.Parallel()
	same := settings{"karpenter_enabled": "true", "karpenter_cpu_limit": "200", "karpenter_node_labels": "a=b,c=d"}
	for what, c := range map[string]struct {
		text string
		want settings
	}{
		"JSON":           {`{"karpenter_enabled": "true", "karpenter_cpu_limit": "200", "karpenter_node_labels": "a=b,c=d"}`, same},
		"JSON's scalars": {`{"karpenter_enabled": true, "karpenter_cpu_limit": 200, "karpenter_node_labels": "a=b,c=d"}`, same},
		"YAML":           {"# of prod\nkarpenter_enabled: true\nkarpenter_node_labels: a=b,c=d # two\nkarpenter_cpu_limit: 200\n", same},
		"lines":          {"# of prod\n\nkarpenter_enabled=true\r\nkarpenter_node_labels = a=b,c=d\nkarpenter_cpu_limit=200", same},
		"spaces":         {"karpenter_enabled = true\nkarpenter_node_labels\t=\ta=b,c=d\nkarpenter_cpu_limit = 200", same},
		"a mark before":  {"\ufeffkarpenter_enabled=true\nkarpenter_node_labels=a=b,c=d\nkarpenter_cpu_limit=200", same},
		"a quoted line":  {`karpenter_config="{\"nodePool\":\n{}}"`, settings{"karpenter_config": "{\"nodePool\":\n{}}"}},
		"JSON inside":    {`{"karpenter_config": {"nodePool": {"weight": 10}}}`, settings{"karpenter_config": `{"nodePool":{"weight":10}}`}},
		"YAML inside":    {"karpenter_config:\n  nodePool: {weight: 10}\n", settings{"karpenter_config": `{"nodePool":{"weight":10}}`}},
		"a date": {"karpenter_config: {ec2NodeClass: {tags: {since: 2026-11-27}}}",
			settings{"karpenter_config": `{"ec2NodeClass":{"tags":{"since":"2026-11-27"}}}`}},
		"an array": {"additional_karpenter_nodepools_config:\n- name: gpu\n",
			settings{"additional_karpenter_nodepools_config": `[{"name":"gpu"}]`}},
		"as it is written": {"karpenter_cpu_limit: 0x10\nnode_disk: 007\nkarpenter_enabled: True\nkarpenter_node_expiry: 1e3\n",
			settings{"karpenter_cpu_limit": "0x10", "node_disk": "007", "karpenter_enabled": "True", "karpenter_node_expiry": "1e3"}},
		"an empty text":      {`{"node_type": ""}`, settings{"node_type": ""}},
		"an empty line":      {"node_type=", settings{"node_type": ""}},
		"nothing":            {"", settings{}},
		"comments only":      {"# later\n", settings{}},
		"an empty object":    {"{}", settings{}},
		"a colon in a value": {"karpenter_node_taints=a=b:NoSchedule", settings{"karpenter_node_taints": "a=b:NoSchedule"}},
		"an equals in YAML":  {"karpenter_node_taints: a=b:NoSchedule", settings{"karpenter_node_taints": "a=b:NoSchedule"}},
	} {
		got, err := readSettings([]byte(c.text))
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, c.want)
		}
	}
}

func TestSettingsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"karpenter_enabeld=true":                           `there is no parameter "karpenter_enabeld"; did you mean karpenter_enabled?`,
		`{"karpenter_enabeld": "true"}`:                    "did you mean karpenter_enabled?",
		"karpenter_enabeld=true\nnode_dsik=20":             "karpenter_enabled?\nthere is no parameter \"node_dsik\"; did you mean node_disk?",
		"node_disk=20\nnode_disk=30":                       "line 2: node_disk is there twice; keep one of them",
		"node_disk: 20\nnode_disk: 30":                     "line 2: node_disk is there twice",
		`{"node_disk": "20", "node_disk": "20"}`:           "node_disk is there twice",
		"node_disk=20\nkarpenter_enabled":                  `line 2 is "karpenter_enabled"; allowed are name=value`,
		"node_disk: null":                                  "node_disk: it has no value; write unset for the default, or leave the name out",
		`{"node_disk": null}`:                              "node_disk: it has no value",
		"node_disk:":                                       "node_disk: it has no value",
		"node_disk: 20\n---\npaused: true\n":               "something follows its first document",
		`{"node_disk": "20"} {"paused": "true"}`:           "something follows its first document",
		`["node_disk"]`:                                    "it has no names",
		"true":                                             "it has no names",
		`{"node_disk": "20"`:                               "it cannot be read as JSON, YAML or lines name=value",
		`node_disk="20`:                                    "line 1: the value of node_disk begins with a quote and is no JSON text",
		"karpenter_config: {nodePool: {weight: .inf}}":     "it cannot be written as JSON",
		"karpenter_config: {1: {weight: 1}, nodePool: {}}": "it cannot be written as JSON",
	} {
		if got, err := readSettings([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

// What export writes, apply reads, whatever the values are.
func TestExportIsReadAgain(t *testing.T) {
	t.Parallel()
	all := settings{
		"karpenter_enabled": "true", "node_disk": "020", "karpenter_cpu_limit": "unset", "karpenter_node_labels": " a=b, c='d' ",
		"karpenter_config": "{\n  \"nodePool\": {}\n}\n", "node_type": `"m5.large"`, "cluster_name": "# no comment",
		"karpenter_node_taints": "a: b", "tags": "x=${y},z=%{if}", "karpenter_instance_families": "~", "build_node_type": "a\\n",
	}
	for _, format := range []string{"json", "yaml", "env"} {
		var out bytes.Buffer
		if err := all.write(&out, "prod", format); err != nil {
			t.Fatal(err)
		}
		if got, err := readSettings(out.Bytes()); err != nil || !maps.Equal(got, all) {
			t.Errorf("%s: %v\n%s\nread as %q", format, err, &out, got)
		}
	}
}

// Parameter Store takes values of more than 4 KB in the advanced tier only.
func TestExportOfALongValue(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"terraform": "\n  tier  = \"Advanced\"\n", "cloudformation": "\n        \"Tier\": \"Advanced\",\n",
	} {
		for size, long := range map[int]bool{4096: false, 4097: true} {
			var out bytes.Buffer
			err := settings{"tags": strings.Repeat("t", size)}.write(&out, "prod", format)
			if err != nil || strings.Contains(out.String(), want) != long {
				t.Errorf("%s, %d: %v", format, size, err)
			}
		}
	}
}

func TestExportForOtherTools(t *testing.T) {
	t.Parallel()
	all := settings{"karpenter_config": "{\"a\":\n\"${b}%{c}\\\\\"}", "node_disk": "20"}
	for format, want := range map[string]string{
		"terraform": `resource "aws_ssm_parameter" "karpenter_config" {
  name  = "/sawhorse/racks/prod/params/karpenter_config"
  type  = "String"
  value = "{\"a\":\n\"$${b}%%{c}\\\\\"}"
}
resource "aws_ssm_parameter" "node_disk" {
  name  = "/sawhorse/racks/prod/params/node_disk"
  type  = "String"
  value = "20"
}
`,
		"cloudformation": `{
  "AWSTemplateFormatVersion": "2010-09-09",
  "Resources": {
    "KarpenterConfig": {
      "Properties": {
        "Name": "/sawhorse/racks/prod/params/karpenter_config",
        "Type": "String",
        "Value": "{\"a\":\n\"${b}%{c}\\\\\"}"
      },
      "Type": "AWS::SSM::Parameter"
    },
    "NodeDisk": {
      "Properties": {
        "Name": "/sawhorse/racks/prod/params/node_disk",
        "Type": "String",
        "Value": "20"
      },
      "Type": "AWS::SSM::Parameter"
    }
  }
}
`,
	} {
		var out bytes.Buffer
		if err := all.write(&out, "prod", format); err != nil || out.String() != want {
			t.Errorf("%s: %v\n%s", format, err, &out)
		}
	}
}
