package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
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
	for name, price := range prices {
		if strings.Contains(name, "metal") == metal {
			list = append(list, product(name, price))
		}
	}
	writeJSON(w, "application/x-amz-json-1.1", map[string]any{"FormatVersion": "aws_v1", "PriceList": list})
}

// product returns one entry of the price list, which is JSON in a string.
func product(instanceType string, price float64) string {
	b, _ := json.Marshal(map[string]any{ // maps of strings can always be encoded
		"product": map[string]any{"attributes": map[string]any{"instanceType": instanceType}},
		"terms": map[string]any{"OnDemand": map[string]any{"term": map[string]any{
			"priceDimensions": map[string]any{"hour": map[string]any{
				"pricePerUnit": map[string]any{"USD": fmt.Sprintf("%f", price)}}}}}},
	})
	return string(b)
}
