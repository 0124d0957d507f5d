package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

// marketplace answers as EC2 and AWS's price list do. It records what it was asked.
type marketplace struct{ asked []string }

func (m *marketplace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.asked = append(m.asked, string(body))
	if r.Header.Get("X-Amz-Target") == "AWSPriceListService.GetProducts" {
		list := map[string]string{"m5.large": "0.096", "m5.xlarge": "0.192"} // of all types, as that of the sandbox
		if strings.Contains(string(body), `"Windows"`) {
			list = map[string]string{"m5.large": "0.188"}
		}
		entries := []string{}
		for name, price := range list {
			entries = append(entries, fmt.Sprintf(`{"product":{"attributes":{"instanceType":%q,"vcpu":"2","memory":"1,008 GiB"}},`+
				`"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"pricePerUnit":{"USD":%q}}}}}}}`, name, price))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"PriceList": entries})
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprint(w, `<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><spotPriceHistorySet>`)
	for _, p := range [][3]string{{"a", "10:00", "0.05"}, {"a", "11:00", "0.04"}, {"b", "12:00", "0.01"}} {
		fmt.Fprintf(w, `<item><instanceType>c6i.large</instanceType><availabilityZone>eu-central-1%s</availabilityZone>`+
			`<timestamp>2026-11-21T%s:00Z</timestamp><spotPrice>%s</spotPrice></item>`, p[0], p[1], p[2])
	}
	fmt.Fprint(w, `</spotPriceHistorySet></DescribeSpotPriceHistoryResponse>`)
}

func (m *marketplace) market(t *testing.T) market {
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	config := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	return market{region: "eu-central-1", ec2: ec2.NewFromConfig(config), prices: pricing.NewFromConfig(config),
		now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	var m marketplace
	list := m.market(t)
	for _, c := range []struct {
		of    offer
		price float64
		asked string
	}{
		{offer{instanceType: "m5.xlarge"}, 0.192, `{"Field":"tenancy","Type":"TERM_MATCH","Value":"Shared"}`},
		{offer{instanceType: "m5.large", windows: true}, 0.188, `"Value":"Windows"`},
		{offer{instanceType: "m5.metal"}, 0, `{"Field":"tenancy","Type":"TERM_MATCH","Value":"Dedicated"}`},
		{offer{instanceType: "c6i.large", zone: "eu-central-1a"}, 0.04, "AvailabilityZone=eu-central-1a"},
		{offer{instanceType: "c6i.large", zone: anyZone}, 0.025, "InstanceType.1=c6i.large"},
		{offer{instanceType: "c6i.large", zone: "eu-central-1c"}, 0, "StartTime=" + url.QueryEscape("2026-11-21T12:00:00Z")},
	} {
		price, err := list.price(t.Context(), c.of)
		if asked := m.asked[len(m.asked)-1]; err != nil || price != c.price || !strings.Contains(asked, c.asked) {
			t.Errorf("%+v: %v, %v; asked %s", c.of, price, err, asked)
		}
	}
}

// Where prices are in yuan, or the price list is not served, nothing is asked, and the price is not known.
func TestPricesThatAreNotKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		region string
		of     offer
	}{
		{"cn-north-1", offer{instanceType: "c6i.large", zone: "eu-central-1a"}},
		{"us-gov-west-1", offer{instanceType: "m5.xlarge"}},
		{"us-iso-east-1", offer{instanceType: "m5.xlarge"}},
		{"eusc-de-east-1", offer{instanceType: "m5.xlarge"}},
	} {
		var m marketplace
		list := m.market(t)
		list.region = c.region
		if price, err := list.price(t.Context(), c.of); err != nil || price != 0 || len(m.asked) > 0 {
			t.Errorf("%s: %v, %v; asked %v", c.region, price, err, m.asked)
		}
	}
}

// nodeOf puts a node into a cluster, with a pod that asks for half of a CPU and a GiB.
func nodeOf(server *k8sfake.Server, name, instanceType string, labels map[string]any) {
	labels["node.kubernetes.io/instance-type"], labels["topology.kubernetes.io/zone"] = instanceType, "eu-central-1a"
	server.Put("/api/v1/nodes/"+name, "v1", "Node", map[string]any{
		"metadata": map[string]any{"name": name, "labels": labels},
		"status":   map[string]any{"capacity": map[string]any{"cpu": "2", "memory": "8Gi"}},
	})
	for pod, phase := range map[string]string{"runs": "Running", "ended": "Succeeded"} {
		server.Put("/api/v1/namespaces/shop/pods/"+pod+"-"+name, "v1", "Pod", map[string]any{
			"metadata": map[string]any{"name": pod + "-" + name, "namespace": "shop"}, "status": map[string]any{"phase": phase},
			"spec": map[string]any{"nodeName": name, "containers": []any{map[string]any{
				"name": "a", "resources": map[string]any{"requests": map[string]any{"cpu": "500m", "memory": "1Gi"}}}}},
		})
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	cluster := k8sfake.New(t)
	nodeOf(cluster, "a", "m5.large", map[string]any{"karpenter.sh/nodepool": "workload", "karpenter.sh/capacity-type": "on-demand"})
	nodeOf(cluster, "b", "c6i.large", map[string]any{"karpenter.sh/nodepool": "workload", "karpenter.sh/capacity-type": "spot"})
	nodeOf(cluster, "c", "m5.large", map[string]any{"eks.amazonaws.com/nodegroup": "system", "eks.amazonaws.com/capacityType": "ON_DEMAND"})
	client, err := cluster.Dial(t.Context(), plan.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	billed := func(before ...plan.Bought) (string, error) {
		var m marketplace
		var out bytes.Buffer
		err := bill{Rack: "prod", Cluster: "prod", before: before}.conclude(t.Context(), client, m.market(t), &out, "text")
		return out.String(), err
	}
	got, err := billed()
	if want := `  NODES  VCPU  ASKED  IDLE   GIB  ASKED  IDLE  $/HOUR  OF
      2   4.0    1.0   75%  16.0    2.0   88%  0.1360  pool workload
      1   2.0    0.5   75%   8.0    1.0   88%  0.0960  group system
      3   6.0    1.5   75%  24.0    3.0   88%  0.2320  all nodes
`; err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	for _, c := range []struct {
		before []plan.Bought
		line   string
		exit   int
	}{
		{[]plan.Bought{{InstanceType: "m5.large", Nodes: 3}, {InstanceType: "m5.xlarge", Spot: true, Nodes: 1}},
			"4  6.0 - - 3024.0 - - >0.2880 node groups before Karpenter", 3},
		{[]plan.Bought{{InstanceType: "m5.large", Nodes: 3}}, "3 6.0 - - 3024.0 - - 0.2880 node groups before Karpenter: now 0.0560 less", 0},
		{[]plan.Bought{{InstanceType: "m5.large", Nodes: 1}}, "1 2.0 - - 1008.0 - - 0.0960 node groups before Karpenter: now 0.1360 more", 0},
		{[]plan.Bought{{Nodes: 2}}, "2 0.0 - - 0.0 - - ? node groups before Karpenter", 3},
	} {
		got, err := billed(c.before...)
		lines := strings.Split(strings.TrimSpace(got), "\n")
		last := strings.Fields(lines[len(lines)-1])
		if exitCode(err) != c.exit || !slices.Equal(last, strings.Fields(c.line)) {
			t.Errorf("%v: %v\n%s", c.before, err, got)
		}
	}
	nodeOf(cluster, "d", "x9.large", map[string]any{})
	got, err = billed()
	if exitCode(err) != 3 || !strings.Contains(got, "     ?  other\n") || !strings.Contains(got, " >0.2320  all nodes\n") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestTheBaselineIsOneOfTheOutputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outputs string
		want    []plan.Bought
		wrong   bool
	}{
		{"", nil, false},
		{`{"karpenter_version":"1.10.0"}`, nil, false},
		{`{"baseline_nodes":"m5.large=3","later":{}}`, []plan.Bought{{InstanceType: "m5.large", Nodes: 3}}, false},
		{"{", nil, true},
	} {
		cloud := awsfake.New()
		if c.outputs != "" {
			cloud.SSM.Values["/sawhorse/racks/prod/outputs"] = c.outputs
		}
		got, err := baseline(t.Context(), cloud.SSM, "prod")
		if !slices.Equal(got, c.want) || (err != nil) != c.wrong {
			t.Errorf("%q: %v, %v", c.outputs, got, err)
		}
	}
}
