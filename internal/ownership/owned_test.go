package ownership

import "testing"

func TestOwned(t *testing.T) {
	for _, c := range []struct {
		tags map[string]string
		want bool
	}{
		{Tags("demo", "arn:1"), true},
		{Tags("demo", "arn:2"), false},
		{Tags("other", "arn:1"), false},
		{map[string]string{TagRack: "demo"}, false},
		{map[string]string{TagCluster: "arn:1"}, false},
		{nil, false},
	} {
		if got := Owned(c.tags, "demo", "arn:1"); got != c.want {
			t.Errorf("%v: %v", c.tags, got)
		}
		if got, want := OwnedObject(c.tags, "demo"), c.tags[TagRack] == "demo"; got != want {
			t.Errorf("labels %v: %v", c.tags, got)
		}
	}
}
