package plan

import (
	"strings"
	"testing"
)

// What a new version's chart brings is refused until somebody has judged it, in a section of the chart and beside them.
func TestAValueThatNobodyJudgedIsRefused(t *testing.T) {
	chart := map[string]any{"hostAliases": []any{}, "settings": map[string]any{"endpoints": map[string]any{"sts": ""}, "isolatedVPC": false}}
	v := valuesOf{new(builder), chart}
	v.object(nil, map[string]any{
		"hostAliases": []any{}, "settings": map[string]any{"endpoints": map[string]any{"sts": "x"}, "isolatedVPC": true},
	}, chart)
	var paths []string
	for _, p := range v.problems {
		if !strings.Contains(p.Message, "is protected: this version of Sawhorse does not know") {
			t.Errorf("%s: %s", p.Path, p.Message)
		}
		paths = append(paths, p.Path)
	}
	if got := strings.Join(paths, " "); got != "hostAliases settings.endpoints" {
		t.Errorf("refused: %s", got)
	}
}
