package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/metrics"
)

var update = flag.Bool("update", false, "write docs/dashboard.svg again")

// widget has the properties of a dashboard widget that the picture shows.
type widget struct {
	Type                string
	X, Y, Width, Height int
	Properties          struct {
		Title, View string
		Metrics     [][]any
		Alarms      []string
	}
}

// The picture in the docs is generated from the dashboard's definition.
func TestPictureOfTheDashboard(t *testing.T) {
	got := draw(widgets(t))
	const file = "../docs/dashboard.svg"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("docs/dashboard.svg is not the dashboard's picture (%v): go test ./cdk -run Picture -update", err)
	}
}

// The first widget shows whether every rack matches its parameters, and the dashboard shows every alarm.
func TestDashboardAnswers(t *testing.T) {
	all := widgets(t)
	first := all[0]
	if first.Y != 0 || first.Width != 24 || first.Properties.View != "singleValue" ||
		!strings.Contains(text(first.Properties.Metrics), `OutOfLine`) {
		t.Errorf("%+v", first)
	}
	alarms := map[string]bool{}
	for _, w := range all {
		if w.Properties.Title == "" || w.Type != "alarm" && len(w.Properties.Metrics) == 0 {
			t.Errorf("an empty widget: %+v", w)
		}
		for _, a := range w.Properties.Alarms {
			alarms[a] = true
		}
	}
	for id := range production.all("AWS::CloudWatch::Alarm") {
		if !alarms[id] {
			t.Errorf("alarm %s is not on the dashboard: %v", id, alarms)
		}
	}
}

// widgets returns the widgets of the production stack. References to resources are replaced by logical ids.
func widgets(t *testing.T) []widget {
	t.Helper()
	body := production.one(t, "AWS::CloudWatch::Dashboard").Properties["DashboardBody"]
	var whole strings.Builder
	for _, part := range at(body, "Fn::Join", 1).([]any) {
		switch part := part.(type) {
		case string:
			whole.WriteString(part)
		default:
			whole.WriteString(regexp.MustCompile(`Fn::GetAtt|Ref|"Arn"|[^A-Za-z0-9]`).ReplaceAllString(text(part), ""))
		}
	}
	var board struct{ Widgets []widget }
	if err := json.Unmarshal([]byte(whole.String()), &board); err != nil {
		t.Fatalf("%v: %s", err, whole.String())
	}
	return board.Widgets
}

const (
	column, row = 42, 32
	palette     = "#0969da #1a7f37 #bf8700 #cf222e #8250df #57606a"
)

func draw(all []widget) string {
	bottom := 0
	for _, w := range all {
		bottom = max(bottom, w.Y+w.Height)
	}
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">
<title>The dashboard, drawn from its definition; lines and figures are examples</title>
<rect width="100%%" height="100%%" fill="#f6f8fa"/>
`, 24*column+8, bottom*row+32)
	for _, w := range all {
		x, y := 8+w.X*column, 8+w.Y*row
		fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="#ffffff" stroke="#d0d7de"/>
<text x="%d" y="%d" fill="#1f2328" font-weight="600">%s</text>
`, x, y, w.Width*column-8, w.Height*row-8, x+12, y+20, html.EscapeString(w.Properties.Title))
		switch {
		case w.Type == "alarm":
			svg.WriteString(alarms(w, x+12, y+32))
		case w.Properties.View == "singleValue":
			svg.WriteString(figures(x+12, y+64))
		default:
			svg.WriteString(lines(w, x+12, y+32))
		}
	}
	fmt.Fprintf(&svg, `<text x="12" y="%d" fill="#57606a">Drawn from the stack's definition; racks, lines and figures are examples.</text>
</svg>
`, bottom*row+22)
	return svg.String()
}

// alarms draws the alarms as chips that are all OK.
func alarms(w widget, left, top int) (svg string) {
	const each, across = 140, 7
	for i, name := range w.Properties.Alarms {
		x, y := left+i%across*each, top+i/across*28
		svg += fmt.Sprintf(`<rect x="%d" y="%d" width="%d" height="22" rx="4" fill="#dafbe1" stroke="#1a7f37"/>`+
			`<text x="%d" y="%d" fill="#1f2328" font-size="11">%s</text>
`, x, y, each-8, x+6, y+15, strings.TrimRight(name, "0123456789ABCDEF"))
	}
	return svg
}

// racks are the example racks.
var racks = []string{"production", "staging", "tools"}

func figures(x, y int) (svg string) {
	for i, rack := range racks {
		svg += fmt.Sprintf(`<text x="%d" y="%d" fill="#1f2328" font-size="28">%d</text><text x="%d" y="%d" fill="#57606a">%s</text>
`, x+i*180, y+8, i/2, x+i*180, y+30, rack)
	}
	return svg
}

// lines draws a curve for each metric, or for each rack if the widget searches for racks, and the legend.
func lines(w widget, left, top int) (svg string) {
	width, height := w.Width*column-32, w.Height*row-76
	names := labels(w)
	for i, name := range names {
		colour := strings.Fields(palette)[i%6]
		var points []string
		for step := 0; step <= 24; step++ {
			level := 0.15 + 0.55*float64(i+1)/float64(len(names)+1) + 0.12*math.Sin(float64(step*(i+2))/3)
			points = append(points, fmt.Sprintf("%d,%d", left+width*step/24, top+height-int(level*float64(height))))
		}
		if i < 6 {
			svg += fmt.Sprintf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>
`, strings.Join(points, " "), colour)
		}
		x := left + i%6*(width/6)
		y := top + height + 18 + i/6*14
		svg += fmt.Sprintf(`<rect x="%d" y="%d" width="8" height="8" fill="%s"/><text x="%d" y="%d" fill="#57606a" font-size="10">%s</text>
`, x, y-8, colour, x+11, y, html.EscapeString(name))
	}
	return svg + fmt.Sprintf(`<path d="M%d %dH%d" stroke="#d0d7de"/>
`, left, top+height, left+width)
}

// labels returns the labels or names of the metrics, or those of example racks or kinds if there is a line for each.
func labels(w widget) (all []string) {
	for _, m := range w.Properties.Metrics {
		options, _ := m[len(m)-1].(map[string]any)
		label, _ := options["label"].(string)
		expression, _ := options["expression"].(string)
		switch {
		case strings.Contains(expression, "SEARCH") && strings.Contains(expression, ","+metrics.DimensionKind+"}"):
			all = append(all, "SpotInterrupted", "InstanceUnhealthy")
		case strings.Contains(expression, "SEARCH") || strings.Contains(expression, "GROUP BY"):
			all = append(all, racks...)
		case label != "":
			all = append(all, label)
		case len(m) > 3 && m[2] == "FunctionName":
			all = append(all, strings.ToLower(strings.TrimRight(fmt.Sprint(m[3]), "0123456789ABCDEF")))
		default:
			all = append(all, fmt.Sprint(m[1]))
		}
	}
	return all
}
