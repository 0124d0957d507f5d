package prometheus

//lint:file-ignore SA1019 Every Grafana imports a dashboard of the first version, and only new ones one of the second.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	query "github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// boards returns the dashboards by file, read with Grafana's own schema: no field that it does not know, none missing, in panels,
// their options and queries too.
func boards(t *testing.T) map[string]dashboard.Dashboard {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob(folder + "dashboards/*.json")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	all := map[string]dashboard.Dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The strict decoder returns an error that is empty where it has found nothing, and leaves panels out.
		if err := new(dashboard.Dashboard).UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
			t.Errorf("%s: %v", file, err)
		}
		var board dashboard.Dashboard
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := board.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = board
	}
	return all
}

// queries returns a dashboard's expressions by panel, with values in place of Grafana's variables.
func queries(t *testing.T, board dashboard.Dashboard) map[string][]string {
	t.Helper()
	variables := strings.NewReplacer("$__rate_interval", "5m", "$rack", "demo")
	all := map[string][]string{}
	for _, p := range board.Panels {
		for _, target := range p.Panel.Targets {
			all[*p.Panel.Title] = append(all[*p.Panel.Title], variables.Replace(target.(*query.Dataquery).Expr))
		}
	}
	return all
}

// Panels have ids of their own, do not overlap, and use the data source that is chosen on top.
func TestDashboards(t *testing.T) {
	uids := map[string]string{}
	for file, board := range boards(t) {
		if other := uids[*board.Uid]; other != "" {
			t.Errorf("%s has the uid of %s", file, other)
		}
		uids[*board.Uid] = file
		ids, cells := map[uint32]bool{}, map[[2]uint32]string{}
		for _, p := range board.Panels {
			at, title := p.Panel.GridPos, *p.Panel.Title
			if ids[*p.Panel.Id] || at.X+at.W > 24 {
				t.Errorf("%s: %s: id %d, at %+v", file, title, *p.Panel.Id, *at)
			}
			ids[*p.Panel.Id] = true
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other := cells[[2]uint32{x, y}]; other != "" {
						t.Fatalf("%s: %s is over %s", file, title, other)
					}
					cells[[2]uint32{x, y}] = title
				}
			}
			for _, target := range p.Panel.Targets {
				if uid := target.(*query.Dataquery).Datasource.Uid; uid == nil || *uid != "${datasource}" {
					t.Errorf("%s: %s: a fixed data source", file, title)
				}
			}
		}
		for title, expressions := range queries(t, board) {
			for _, expression := range expressions {
				if _, err := promQL.ParseExpr(expression); err != nil {
					t.Errorf("%s: %s: %v", file, title, err)
				}
			}
		}
	}
}

// The table of racks leads to the dashboard of one rack, with the variable that it has.
func TestLinkToRack(t *testing.T) {
	all := boards(t)
	text, err := json.Marshal(all["racks.json"])
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`/d/([a-z-]+)\?var-([a-z]+)=`).FindStringSubmatch(string(text))
	rack := all["rack.json"]
	if m == nil || m[1] != *rack.Uid || m[2] != rack.Templating.List[1].Name {
		t.Errorf("the link %q is not to %s", m, *rack.Uid)
	}
}
