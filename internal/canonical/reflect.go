package canonical

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is a field of a struct, as its tag says.
type field struct {
	index     []int
	name      string
	omitEmpty bool
}

// known has the fields of each type of struct, []field.
var known sync.Map

// fieldsOf returns the fields that encoding/json encodes, in their order. The fields of an embedded struct count as the
// struct's own.
func fieldsOf(of reflect.Type) []field {
	if found, is := known.Load(of); is {
		return found.([]field)
	}
	var all []field
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		all = append(all, field{f.Index, name, slices.Contains(strings.Split(options, ","), "omitempty")})
	}
	known.Store(of, all)
	return all
}

func addStruct(text []byte, of reflect.Value) []byte {
	text = append(text, '{')
	first := true
	for _, f := range fieldsOf(of.Type()) {
		value := of.FieldByIndex(f.index)
		if f.omitEmpty && empty(value) {
			continue
		}
		if !first {
			text = append(text, ',')
		}
		first = false
		text = append(addString(text, f.name), ':')
		text = add(text, value.Interface())
	}
	return append(text, '}')
}

// empty reports whether a field with omitempty is left out.
func empty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return value.Len() == 0
	case reflect.Struct:
		return false
	}
	return value.IsZero()
}

func addAnyMap(text []byte, of reflect.Value) []byte {
	keys := make([]string, 0, of.Len())
	for _, key := range of.MapKeys() {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	text = append(text, '{')
	for i, key := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(addString(text, key), ':')
		text = add(text, of.MapIndex(reflect.ValueOf(key)).Interface())
	}
	return append(text, '}')
}

func addStructs(text []byte, of reflect.Value) []byte {
	text = append(text, '[')
	for i := range of.Len() {
		if i > 0 {
			text = append(text, ',')
		}
		text = add(text, of.Index(i).Interface())
	}
	return append(text, ']')
}
