package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// serveProducts answers pricing's GetProducts in the form that Karpenter reads, once for metal types and once for the
// others. moto's answer does not have that form.
func (g *gateway) serveProducts(w http.ResponseWriter, req *http.Request) {
	body, err := buffer(req)
	if err != nil || g.cfg.Prices == nil {
		http.Error(w, "gateway: no prices", http.StatusNotImplemented)
		return
	}
	prices, err := g.cfg.Prices()
	if err != nil {
		http.Error(w, "gateway: prices: "+err.Error(), http.StatusInternalServerError)
		return
	}
	metal := bytes.Contains(body, []byte("bare metal"))
	list := []string{}
	one := filteredType(body)
	for name, price := range prices {
		if one == "" && strings.Contains(name, "metal") == metal {
			list = append(list, product(map[string]string{"instanceType": name}, price))
		}
	}
	if price, ok := prices[one]; ok {
		attributes, err := g.networks.attributes(req.Context(), one)
		if err != nil {
			http.Error(w, "gateway: "+err.Error(), http.StatusBadGateway)
			return
		}
		list = append(list, product(attributes, price))
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(map[string]any{"FormatVersion": "aws_v1", "PriceList": list}) // the caller may have gone
}

// filteredType returns the instance type that a call filters by; empty if it does not.
func filteredType(body []byte) string {
	var call struct {
		Filters []struct{ Field, Value string }
	}
	_ = json.Unmarshal(body, &call) // without filters, the answer has all types
	for _, f := range call.Filters {
		if f.Field == "instanceType" {
			return f.Value
		}
	}
	return ""
}

// attributes returns what the price list says of an instance type: what EC2 does.
func (n *networks) attributes(ctx context.Context, instanceType string) (map[string]string, error) {
	found, err := n.ec2.DescribeInstanceTypes(ctx,
		&ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(instanceType)}})
	if err != nil {
		return nil, fmt.Errorf("instance type %s: describe: %w", instanceType, err)
	}
	named := map[string]string{"instanceType": instanceType}
	for _, t := range found.InstanceTypes {
		named["vcpu"] = fmt.Sprint(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
		named["memory"] = fmt.Sprintf("%g GiB", float64(aws.ToInt64(t.MemoryInfo.SizeInMiB))/1024)
	}
	return named, nil
}

// product returns one entry of the price list, which is JSON in a string.
func product(attributes map[string]string, price float64) string {
	b, _ := json.Marshal(map[string]any{ // maps of strings can always be encoded
		"product": map[string]any{"attributes": attributes},
		"terms": map[string]any{"OnDemand": map[string]any{"term": map[string]any{
			"priceDimensions": map[string]any{"hour": map[string]any{
				"pricePerUnit": map[string]any{"USD": fmt.Sprintf("%f", price)}}}}}},
	})
	return string(b)
}
