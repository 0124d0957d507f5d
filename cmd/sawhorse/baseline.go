package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// former is what the nodes of the baseline would cost.
type former struct {
	Nodes       int     `json:"nodes"`
	CPUBought   float64 `json:"cpuBought"`
	GiBBought   float64 `json:"memoryGiBBought"`
	DollarsHour float64 `json:"dollarsAnHour"`
	// Unpriced is the number of nodes whose price is not known: they are in no sum but Nodes.
	Unpriced int `json:"unpriced,omitempty"`
	// Difference is what the nodes of today cost more than these. It is absent while a price is not known.
	Difference *float64 `json:"differenceAnHour,omitempty"`
}

// baseline returns what the node groups ran when Karpenter was turned on; nothing for a rack on which it is not.
func baseline(ctx context.Context, reader store.VersionReader, rack string) ([]plan.Bought, error) {
	version, err := store.ReadVersion(ctx, reader, paths().Outputs(rack))
	if err != nil || version == nil {
		return nil, err
	}
	var outputs events.Outputs
	if err := json.Unmarshal([]byte(version.Text), &outputs); err != nil {
		return nil, fmt.Errorf("parameter %s: decode: %w", paths().Outputs(rack), err)
	}
	return plan.ParseBaseline(outputs.BaselineNodes)
}

// former adds up the nodes of a baseline; nil if there is none.
func (m market) former(ctx context.Context, before []plan.Bought) (*former, error) {
	if len(before) == 0 {
		return nil, nil
	}
	sum := &former{}
	for _, bought := range before {
		sum.Nodes += bought.Nodes
		listed, err := m.listed(ctx, bought)
		if err != nil {
			return nil, err
		}
		if listed.price == 0 {
			sum.Unpriced += bought.Nodes
			continue
		}
		sum.CPUBought += float64(bought.Nodes) * listed.cpu
		sum.GiBBought += float64(bought.Nodes) * listed.gib
		sum.DollarsHour += float64(bought.Nodes) * listed.price
	}
	return sum, nil
}

// listed returns what one of these nodes has, and its price.
func (m market) listed(ctx context.Context, bought plan.Bought) (product, error) {
	if bought.InstanceType == "" {
		return product{}, nil
	}
	listed, err := m.onDemand(ctx, offer{instanceType: bought.InstanceType})
	if err == nil && bought.Spot {
		listed.price, err = m.spot(ctx, offer{instanceType: bought.InstanceType, zone: anyZone})
	}
	return listed, err
}

// compare sets the baseline, and what the nodes of today cost more.
func (b *bill) compare(before *former) {
	if b.Baseline = before; before != nil && before.Unpriced+b.Total.Unpriced == 0 {
		before.Difference = new(b.Total.DollarsHour - before.DollarsHour)
	}
}

// difference says how the nodes of today compare.
func (f *former) difference() string {
	switch {
	case f.Difference == nil:
		return ""
	case *f.Difference > 0:
		return fmt.Sprintf(": now %.4f more", *f.Difference)
	}
	return fmt.Sprintf(": now %.4f less", -*f.Difference)
}
