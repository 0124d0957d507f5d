package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// The pictures of the dashboards show what a real controller counted every five seconds while the script Metrics had a node launched,
// another one interrupted, and one refused (observability/metrics/recorded.txt, of `make e2e NAME=Metrics VERSIONS=1.10.0 UPDATE=yes`).
const scrapes = 5 * time.Second

// Each dashboard has a picture for a wide window and one for a narrow one, in which Grafana puts the panels below one another.
func TestPictures(t *testing.T) {
	for file, board := range boards(t) {
		text, err := json.Marshal(board)
		if err != nil {
			t.Fatal(err)
		}
		var drawn picture
		if err := json.Unmarshal(text, &drawn); err != nil {
			t.Fatal(err)
		}
		drawn.answer(t)
		for _, width := range []int{1200, 600} {
			name := fmt.Sprintf("../../docs/%s-%d.svg", strings.TrimSuffix(file, ".json"), width)
			got := drawn.svg(width)
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(name); err != nil || string(want) != got {
				t.Errorf("%s is not the dashboard's picture (%v): go test -C tools/prometheus . -run Pictures -update", name, err)
			}
		}
	}
}

// picture has what a picture shows of a dashboard.
type picture struct {
	Title  string
	Panels []*panel
}

type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }
	// Transformations name a table's columns.
	Transformations []struct {
		Options struct{ RenameByName map[string]string }
	}
	// curves are the results of all targets, with their legends, columns those of each target.
	curves  []curve
	columns []promql.Matrix
}

type curve struct {
	legend string
	points []promql.FPoint
}

// answer asks the recorded series what each panel asks.
func (d *picture) answer(t *testing.T) {
	t.Helper()
	input, steps := "load "+scrapes.String()+"\n", 0
	for _, line := range lines(t, folder+"metrics/recorded.txt") {
		series, values, _ := strings.Cut(line, " ")
		for !strings.HasSuffix(series, "}") && strings.Contains(series, "{") { // a label's value with a space
			more, rest, _ := strings.Cut(values, " ")
			series, values = series+" "+more, rest
		}
		name, with, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		input += fmt.Sprintf("  %s{%s} %s\n", name, strings.TrimPrefix(with+`,rack="demo",instance="a",job="karpenter"`, ","), values)
		steps = max(steps, length(values))
	}
	loader, err := promqltest.NewLazyLoader(input, promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer loader.Close()
	begin, end := time.Unix(0, 0), time.Unix(0, 0).Add(time.Duration(steps-1)*scrapes)
	variables := strings.NewReplacer("$__rate_interval", "1m", "$rack", "demo")
	loader.WithSamplesTill(end, func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				query, err := loader.QueryEngine().NewRangeQuery(context.Background(), loader.Storage(), nil, variables.Replace(target.Expr),
					begin, end, scrapes)
				if err != nil {
					t.Fatalf("%s: %v", p.Title, err)
				}
				matrix, err := query.Exec(context.Background()).Matrix()
				if err != nil {
					t.Fatalf("%s: %v", p.Title, err)
				}
				p.columns = append(p.columns, slices.Clone(matrix))
				for _, series := range matrix {
					p.curves = append(p.curves, curve{legend(target.LegendFormat, series.Metric), slices.Clone(series.Floats)})
				}
			}
		}
	})
}

// length returns how many values promtool's notation stands for.
func length(values string) (n int) {
	for value := range strings.FieldsSeq(values) {
		times := 0
		if _, more, is := strings.Cut(value, "x"); is {
			fmt.Sscan(more, &times)
		}
		n += times + 1
	}
	return n
}

func legend(format string, of labels.Labels) string {
	return regexp.MustCompile(`{{(\w+)}}`).ReplaceAllStringFunc(format, func(name string) string { return of.Get(strings.Trim(name, "{}")) })
}

const (
	row     = 32 // pixels
	palette = "#1a7f37 #bf8700 #0969da #cf222e #8250df #57606a"
)

func (d *picture) svg(width int) string {
	var body strings.Builder
	bottom := 0
	for _, p := range d.Panels {
		x, y, w, h := p.GridPos.X*width/24, p.GridPos.Y*row, p.GridPos.W*width/24, p.GridPos.H*row
		if width < 800 && p.Type != "stat" {
			x, y, w = 0, bottom, width
		} else if width < 800 {
			x, w, h = p.GridPos.X*width/24, p.GridPos.W*width/24, 3*row
		}
		bottom = max(bottom, y+h)
		fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="#ffffff" stroke="#d0d7de"/>
<text x="%d" y="%d" font-weight="600">%s</text>
`, x+4, y+4, w-8, h-8, x+14, y+22, html.EscapeString(p.Title))
		switch p.Type {
		case "stat":
			body.WriteString(p.stat(x+14, y+h-24))
		case "table":
			body.WriteString(p.table(x+14, y+48, w-28))
		default:
			body.WriteString(p.plot(x+60, y+36, w-76, h-36))
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="ui-sans-serif, system-ui, sans-serif" font-size="12" fill="#1f2328">
<title>%s, drawn from its definition and from what a real controller counted in the sandbox</title>
<rect width="100%%" height="100%%" fill="#f6f8fa"/>
%s</svg>
`, width, bottom+4, html.EscapeString(d.Title), body.String())
}

func (p *panel) stat(x, y int) string {
	shown := "no data"
	if len(p.curves) > 0 {
		if shown = p.curves[0].legend; shown == "" {
			shown = p.value(last(p.curves[0].points))
		}
	}
	return fmt.Sprintf(`<text x="%d" y="%d" font-size="26" fill="#1a7f37">%s</text>
`, x, y, shown)
}

func last(points []promql.FPoint) float64 { return points[len(points)-1].F }

// table shows the last values of each rack, in the order of the targets.
func (p *panel) table(x, y, width int) string {
	names := p.Transformations[len(p.Transformations)-1].Options.RenameByName
	rows := map[string][]string{"": {names["rack"]}}
	for i, column := range p.columns {
		title := names[fmt.Sprintf("Value #%c", 'A'+i)]
		if title == "" {
			title = names["version"]
		}
		rows[""] = append(rows[""], title)
		for _, series := range column {
			rack, shown := series.Metric.Get("rack"), series.Metric.Get("version")
			if shown == "" {
				shown = p.value(last(series.Floats))
			}
			for len(rows[rack]) <= i {
				rows[rack] = append(rows[rack], "")
			}
			rows[rack][0] = rack
			rows[rack] = append(rows[rack], shown)
		}
	}
	var svg strings.Builder
	for _, rack := range slices.Sorted(maps.Keys(rows)) {
		for i, cell := range rows[rack] {
			fmt.Fprintf(&svg, `<text x="%d" y="%d">%s</text>
`, x+i*width/len(rows[""]), y, html.EscapeString(cell))
		}
		y += 24
	}
	return svg.String()
}

// plot draws the curves of a panel with their largest value and their legends.
func (p *panel) plot(x, y, width, height int) string {
	var svg strings.Builder
	height -= 28 + 14*((len(p.curves)+1)/2)
	most, end := 0.0, int64(1)
	for _, c := range p.curves {
		for _, point := range c.points {
			if !math.IsNaN(point.F) {
				most = max(most, point.F)
			}
			end = max(end, point.T)
		}
	}
	fmt.Fprintf(&svg, `<path d="M%d %dH%d M%d %dH%d" stroke="#d0d7de"/>
<text x="%d" y="%d" text-anchor="end" fill="#57606a">%s</text><text x="%d" y="%d" text-anchor="end" fill="#57606a">%s</text>
`, x, y+height, x+width, x, y, x+width, x-6, y+4, p.value(most), x-6, y+height+4, p.value(0))
	for i, c := range p.curves {
		colour := strings.Fields(palette)[i%6]
		path, at := "", int64(-1)
		for _, point := range c.points {
			if math.IsNaN(point.F) {
				continue
			}
			command := "L"
			if at < 0 || point.T-at > scrapes.Milliseconds() {
				command = "M"
			}
			at = point.T
			path += fmt.Sprintf("%s%d %d", command, x+int(float64(width)*float64(at)/float64(end)),
				y+height-int(float64(height)*point.F/max(most, 1e-9)))
		}
		left, top := x+i%2*width/2, y+height+22+i/2*14
		fmt.Fprintf(&svg, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>
<rect x="%d" y="%d" width="8" height="8" fill="%s"/><text x="%d" y="%d" fill="#57606a" font-size="11">%s</text>
`, path, colour, left, top-8, colour, left+12, top, html.EscapeString(c.legend))
	}
	return svg.String()
}

// value shows a value in the panel's unit.
func (p *panel) value(v float64) string {
	switch p.FieldConfig.Defaults.Unit {
	case "percentunit":
		return fmt.Sprintf("%.0f%%", 100*v)
	case "currencyUSD":
		return fmt.Sprintf("$%.3f", v)
	case "s":
		return fmt.Sprintf("%.3g s", v)
	}
	return fmt.Sprintf("%.3g", v)
}
