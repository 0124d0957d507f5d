package canonical

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
)

// whole is a struct with fields of all kinds.
type whole struct {
	Inner
	Named     Inner `json:"named,omitempty"`
	A         int   `json:"a"`
	B         bool  `json:",omitempty"`
	hidden    int
	Left      string           `json:"-"`
	List      []string         `json:"list,omitempty"`
	Nil       []string         `json:"nil"`
	Marshaled marshaled        `json:"marshaled"`
	Pointer   *int             `json:"pointer,omitempty"`
	Any       any              `json:"any"`
	Structs   []Inner          `json:"structs,omitempty"`
	Maps      map[string]Inner `json:"maps,omitempty"`
	Text      document         `json:"text,omitempty"`
	Named2    name             `json:"named2,omitempty"`
	Float     float64          `json:"float,omitempty"`
	Zero      *int             `json:"zero"`
}

// Inner is embedded.
type Inner struct {
	I     string            `json:"i,omitempty"`
	Empty map[string]string `json:"empty,omitempty"`
}

type name string

type marshaled struct{ X int }

func (marshaled) MarshalJSON() ([]byte, error) { return []byte(`"m"`), nil }

type document int

func (d document) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `{"n":%d}`, d), nil }

func same(t *testing.T, value any) {
	t.Helper()
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if got := JSON(value); string(got) != string(want) {
		t.Errorf("%s\nwant %s", got, want)
	}
	if Hash(value) != sha256.Sum256(want) {
		t.Errorf("the hash is not that of %s", want)
	}
}

func TestWhatEncodingJSONReturns(t *testing.T) {
	many := map[string]any{}
	for _, key := range "zyxwvutsrqponmlkjihgfedcba" {
		many[string(key)] = string(key)
	}
	for _, value := range []any{
		nil, true, false, 0, -7, int64(1 << 60), 1.5, 1e21, 3.0, float32(0.1), uint8(7), json.Number("12.50"),
		name("a"), document(3), "", "a", "ä", "a\"b", "a\\b", "<a&b>", "\n", "\x00",
		"\u2028", "\xff", "~", " ", map[string]any(nil), []any(nil), []string(nil), map[string]string(nil), []any{}, map[string]any{},
		[]string{"a", "\t"}, map[string]string{"b": "1", "a": "2", "<": "3"}, many,
		map[string]any{"a": []any{1, "x", nil, map[string]any{"c": true, "b": 2.5}}, "é": []string{"y"}},
		[]map[string]any{{"a": 1}, nil}, [2]byte{1, 2}, []map[string]any(nil), []byte("x"), map[int]string{2: "b", 1: "a"},
		new("x"),
		whole{}, []whole{{A: 1}, {}}, []whole(nil), map[string]whole{"b": {}, "a": {}}, map[string]whole(nil), &whole{A: 2},
		whole{
			Inner: Inner{I: "i", Empty: map[string]string{}}, Named: Inner{I: "<"}, A: 1, B: true, hidden: 7, Left: "x", List: []string{},
			Pointer: new(7), Any: map[string]any{"x": 1}, Structs: []Inner{{I: "1"}}, Maps: map[string]Inner{"z": {}, "y": {I: "2"}},
			Marshaled: marshaled{7}, Text: 2, Named2: "n", Float: 0.5,
		},
	} {
		same(t, value)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"a":[1,2.5e3,"x",null,true,{"b":"<&>"}],"":"\u2028"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) == nil {
			same(t, value)
		}
	})
}
