package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// observed parses facts. A node group may be in the envelope that `aws eks describe-nodegroup` prints.
func observed(raw json.RawMessage) (plan.Facts, error) {
	var facts plan.Facts
	if raw == nil {
		return facts, nil
	}
	if err := json.Unmarshal(raw, &facts); err != nil {
		return facts, err
	}
	if err := twice("", raw); err != nil {
		return facts, err
	}
	if err := unknownFact("", raw, reflect.TypeFor[plan.Facts]()); err != nil {
		return facts, err
	}
	var enveloped struct {
		NodeGroups []struct {
			Inner *plan.NodeGroup `json:"nodegroup"`
		} `json:"nodegroups"`
	}
	if err := json.Unmarshal(raw, &enveloped); err != nil {
		return facts, err
	}
	for i, group := range enveloped.NodeGroups {
		if group.Inner != nil {
			facts.NodeGroups[i] = *group.Inner
		}
	}
	// Incomplete facts about a cluster do not mean that the cluster is gone.
	if c := facts.Cluster; c != nil {
		c.Status, c.Partition = cmp.Or(c.Status, "ACTIVE"), cmp.Or(c.Partition, "aws")
	}
	return facts, nil
}

// twice returns an error about a name that an object has twice, as the end of a sentence.
func twice(path string, raw json.RawMessage) error {
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '{':
		fields, err := object(raw)
		if err != nil {
			return fmt.Errorf("%s%s", path, strings.TrimPrefix(err.Error(), "it"))
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if err := twice(path+"."+plain(name), fields[name]); err != nil {
				return err
			}
		}
	case '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			return err
		}
		for i, each := range elements {
			if err := twice(fmt.Sprintf("%s[%d]", path, i), each); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknownFact returns an error about a field that no fact has, as the end of a sentence. Node groups and NodeClaims may
// have any field, because they are the answers of EKS and Kubernetes, which have more than are used.
func unknownFact(path string, raw json.RawMessage, t reflect.Type) error {
	switch {
	case t == reflect.TypeFor[plan.NodeGroup]() || t == reflect.TypeFor[plan.Object]():
		return nil
	case t.Kind() == reflect.Pointer:
		return unknownFact(path, raw, t.Elem())
	case t.Kind() == reflect.Slice:
		var elements []json.RawMessage
		_ = json.Unmarshal(raw, &elements) // a wrong type is reported by the caller
		for i, each := range elements {
			if err := unknownFact(fmt.Sprintf("%s[%d]", path, i), each, t.Elem()); err != nil {
				return err
			}
		}
	case t.Kind() == reflect.Map || t.Kind() == reflect.Struct:
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields)
		known := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			known = fieldsOf(t)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			field, is := known[name]
			if t.Kind() == reflect.Map {
				field = t.Elem()
			} else if !is {
				return fmt.Errorf("%s has the field %q; %s", path, name, instead(name, slices.Sorted(maps.Keys(known))))
			}
			if err := unknownFact(path+"."+name, fields[name], field); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldsOf returns the JSON fields of a struct, including those of embedded structs.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			all[name] = f.Type
		}
	}
	return all
}
