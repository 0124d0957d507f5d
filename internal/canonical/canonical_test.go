package canonical

import (
	"encoding/json"
	"testing"
)

func same(t *testing.T, value any) {
	t.Helper()
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if got := JSON(value); string(got) != string(want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestWhatEncodingJSONReturns(t *testing.T) {
	many := map[string]any{}
	for _, key := range "zyxwvutsrqponmlkjihgfedcba" {
		many[string(key)] = string(key)
	}
	for _, value := range []any{
		nil, true, false, 0, -7, int64(1 << 60), 1.5, 1e21, 3.0, float32(0.1), uint8(7), json.Number("12.50"), "", "a", "ä", "a\"b", "a\\b", "<a&b>", "\n", "\x00",
		"\u2028", "\xff", "~", " ", map[string]any(nil), []any(nil), []string(nil), map[string]string(nil), []any{}, map[string]any{},
		[]string{"a", "\t"}, map[string]string{"b": "1", "a": "2", "<": "3"}, many,
		map[string]any{"a": []any{1, "x", nil, map[string]any{"c": true, "b": 2.5}}, "é": []string{"y"}},
		[]map[string]any{{"a": 1}, nil}, struct {
			B int `json:"b,omitempty"`
			A []any
		}{A: []any{"x"}}, [2]byte{1, 2}, []map[string]any(nil),
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
