package main

import (
	"encoding/json"
	"io"

	"github.com/aws/karpenter-provider-aws/pkg/providers/pricing"
)

// region is the region whose prices the sandbox answers with.
const region = "us-east-1"

// printPrices writes Karpenter's static on-demand prices as one JSON object: instance type to USD an hour.
func printPrices(w io.Writer) error {
	return json.NewEncoder(w).Encode(pricing.InitialOnDemandPricesAWS[region])
}
