package main

import (
	"strings"
	"testing"
)

func TestSettingsRefuse(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"architecture", "riscv", "arm64 or x86_64"},
		{"prefix", "sawhorse", "like /sawhorse"},
		{"prefix", "/sawhorse/", "like /sawhorse"},
		{"prefix", "/aws/sawhorse", "keeps for itself"},
		{"stackName", "a_b", "like Sawhorse"},
		{"busName", "a b", "like sawhorse"},
		{"settleSeconds", "61", "from 0 to 60"},
		{"settleSeconds", "5s", "from 0 to 60"},
		{"resyncSlots", "7", "a divisor of resyncMinutes, 60"},
		{"subnetIds", "subnet-1", "together with securityGroupIds"},
		{"removal", "delete", "retain or destroy"},
		{"synthesizer", "legacy", "default or cli"},
	} {
		_, err := readSettings(func(key string) any {
			if key == c.key {
				return c.value
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "context "+c.key) {
			t.Errorf("%s=%v: %v, want %q", c.key, c.value, err, c.want)
		}
	}
}

func TestSettingsReportEverything(t *testing.T) {
	_, err := readSettings(func(key string) any { return map[string]any{"architecture": "x", "removal": "y"}[key] })
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want two lines: %v", err)
	}
}

func TestMissingZipIsOneSentence(t *testing.T) {
	s := settings{Dist: t.TempDir(), Architecture: "arm64"}
	if err := s.checkZips(); err == nil || !strings.Contains(err.Error(), "run `make build` first") {
		t.Errorf("%v", err)
	}
}
