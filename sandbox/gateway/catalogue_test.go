package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const allTypes = "Action=DescribeInstanceTypes&MaxResults=100&Version=2016-11-15"

func TestCatalogueAsksOnce(t *testing.T) {
	c := newCatalogue(Config{Catalogue: filepath.Join(t.TempDir(), "new")})
	var asked atomic.Int32
	fetch := func() ([]byte, error) { asked.Add(1); return []byte("all types"), nil }
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if got, err := c.get([]byte(allTypes), fetch); err != nil || string(got) != "all types" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	group.Wait()
	next := newCatalogue(Config{Catalogue: c.dir})
	if got, err := next.get([]byte(allTypes), fetch); err != nil || string(got) != "all types" {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("moto was asked %d times", n)
	}
	if _, err := next.get([]byte(allTypes+"&Filter.1.Name=x"), fetch); err != nil || asked.Load() != 2 {
		t.Errorf("another question: asked %d times, %v", asked.Load(), err)
	}
}

func TestOfferingsOfFamilies(t *testing.T) {
	const call = "Action=DescribeInstanceTypeOfferings&LocationType=availability-zone"
	all, families := everyOffering([]byte(call + "&Filter.1.Name=instance-type&Filter.1.Value.1=c6i.%2A&Filter.1.Value.2=p5.%2A"))
	slices.Sort(families)
	if string(all) != call || !slices.Equal(families, []string{"c6i", "p5"}) {
		t.Errorf("%s, %v", all, families)
	}
	for _, other := range []string{call, allTypes, call + "&Filter.1.Name=location&Filter.1.Value.1=eu-central-1a"} {
		if all, families := everyOffering([]byte(other)); string(all) != other || families != nil {
			t.Errorf("%s: %s, %v", other, all, families)
		}
	}
	item := func(name string) string {
		return "<item>\n<instanceType>" + name + "</instanceType><location>a</location></item>"
	}
	text := "<set>" + item("c6i.large") + item("c6id.large") + item("p5.48xlarge") + "</set>"
	if got := string(offeringsOf([]byte(text), families)); got != "<set>"+item("c6i.large")+item("p5.48xlarge")+"</set>" {
		t.Error(got)
	}
	if got := string(offeringsOf([]byte(text), nil)); got != text {
		t.Error(got)
	}
}

func TestCatalogueForgetsFailures(t *testing.T) {
	c := newCatalogue(Config{Catalogue: t.TempDir()})
	if _, err := c.get([]byte(allTypes), func() ([]byte, error) { return nil, errors.New("moto is starting") }); err == nil {
		t.Error("the failure was swallowed")
	}
	if got, err := c.get([]byte(allTypes), func() ([]byte, error) { return []byte("types"), nil }); err != nil || string(got) != "types" {
		t.Errorf("the next try: %q, %v", got, err)
	}
	if files, _ := os.ReadDir(c.dir); len(files) != 1 {
		t.Errorf("kept files: %v", files)
	}
}

func TestQuestionIgnoresTheMoment(t *testing.T) {
	spot := "Action=DescribeSpotPriceHistory&ProductDescription.1=Linux"
	if question([]byte(spot+"&StartTime=2026-01-01T00%3A00%3A00Z")) != question([]byte(spot+"&StartTime=2026-01-02T00%3A00%3A00Z")) {
		t.Error("the start time makes another question")
	}
	if question([]byte(spot)) == question([]byte(spot+"&InstanceType.1=m5.large")) {
		t.Error("the instance type does not")
	}
}

func TestSpotPrices(t *testing.T) {
	item := func(name, price string) string {
		return "<item><availabilityZone>us-east-1a</availabilityZone><instanceType>" + name + "</instanceType><spotPrice>" + price +
			"</spotPrice></item>"
	}
	history := func(items ...string) []byte {
		return []byte("<spotPriceHistorySet>" + strings.Join(items, "") + "</spotPriceHistorySet>")
	}
	prices := func() (map[string]float64, error) { return map[string]float64{"m5.large": 0.1, "m5.xlarge": 0.2}, nil }
	got, err := spotPrices(history(item("m5.large", "0.00001"), item("u-1.metal", "0.00001"), item("m5.xlarge", "0.00001")), prices)
	if want := history(item("m5.large", "0.035000"), item("m5.xlarge", "0.070000")); err != nil || string(got) != string(want) {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
