package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"
	corev1 "k8s.io/api/core/v1"
)

// offer is what AWS has one price for. Only a spot price has a zone.
type offer struct {
	instanceType, zone string
	windows            bool
}

// offerOf returns what a node is bought as. A reserved node is paid at the on-demand price, by the reservation.
func offerOf(node *corev1.Node) offer {
	of := offer{instanceType: node.Labels[corev1.LabelInstanceTypeStable], windows: node.Labels[corev1.LabelOSStable] == "windows"}
	if node.Labels["karpenter.sh/capacity-type"] == "spot" || node.Labels["eks.amazonaws.com/capacityType"] == "SPOT" {
		of.zone = node.Labels[corev1.LabelTopologyZone]
	}
	return of
}

// market asks AWS for prices, in dollars an hour.
type market struct {
	region string
	prices *pricing.Client
	ec2    *ec2.Client
	now    func() time.Time
}

// pricingRegion is where AWS's price list is served for a region. It is served in few (AWS Billing User Guide, "AWS Price List
// Query API endpoints").
func pricingRegion(region string) string {
	switch area, _, _ := strings.Cut(region, "-"); area {
	case "ap":
		return "ap-south-1"
	case "eu":
		return "eu-central-1"
	case "cn":
		return "cn-northwest-1"
	}
	return "us-east-1"
}

// price returns the price of an offer; 0 if AWS names none.
func (m market) price(ctx context.Context, of offer) (float64, error) {
	if of.zone != "" {
		return m.spot(ctx, of)
	}
	return m.onDemand(ctx, of)
}

// spot returns the price that is in force in the zone now.
func (m market) spot(ctx context.Context, of offer) (float64, error) {
	product := "Linux/UNIX"
	if of.windows {
		product = "Windows"
	}
	out, err := m.ec2.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{
		InstanceTypes: []ec2types.InstanceType{ec2types.InstanceType(of.instanceType)}, AvailabilityZone: &of.zone,
		ProductDescriptions: []string{product}, StartTime: new(m.now()),
	})
	if err != nil {
		return 0, fmt.Errorf("spot price of %s in %s: %w", of.instanceType, of.zone, err)
	}
	here := slices.DeleteFunc(out.SpotPriceHistory, func(p ec2types.SpotPrice) bool {
		return string(p.InstanceType) != of.instanceType || aws.ToString(p.AvailabilityZone) != of.zone
	})
	if len(here) == 0 {
		return 0, nil
	}
	last := slices.MaxFunc(here, func(a, b ec2types.SpotPrice) int { return aws.ToTime(a.Timestamp).Compare(aws.ToTime(b.Timestamp)) })
	price, _ := strconv.ParseFloat(aws.ToString(last.SpotPrice), 64)
	return price, nil
}

func (m market) onDemand(ctx context.Context, of offer) (float64, error) {
	system, family, tenancy := "Linux", "Compute Instance", "Shared"
	if of.windows {
		system = "Windows"
	}
	if strings.Contains(of.instanceType, ".metal") { // AWS lists them so
		family, tenancy = "Compute Instance (bare metal)", "Dedicated"
	}
	var filters []types.Filter
	for _, f := range [][2]string{
		{"instanceType", of.instanceType}, {"regionCode", m.region}, {"operatingSystem", system}, {"productFamily", family}, {"tenancy", tenancy},
		{"preInstalledSw", "NA"}, {"licenseModel", "No License required"}, {"capacitystatus", "Used"}, {"marketoption", "OnDemand"},
	} {
		filters = append(filters, types.Filter{Field: &f[0], Type: types.FilterTypeTermMatch, Value: &f[1]})
	}
	pages := pricing.NewGetProductsPaginator(m.prices, &pricing.GetProductsInput{ServiceCode: new("AmazonEC2"), Filters: filters})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, fmt.Errorf("price of %s: %w", of.instanceType, err)
		}
		for _, text := range page.PriceList {
			if price := priceIn(text, of.instanceType); price > 0 {
				return price, nil
			}
		}
	}
	return 0, nil
}

// priceIn returns the price in one entry of AWS's list; 0 if it is that of another type.
func priceIn(text, instanceType string) float64 {
	var entry struct {
		Product struct {
			Attributes struct {
				InstanceType string `json:"instanceType"`
			} `json:"attributes"`
		} `json:"product"`
		Terms struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct {
					PricePerUnit struct{ USD string } `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			}
		} `json:"terms"`
	}
	if json.Unmarshal([]byte(text), &entry) != nil || entry.Product.Attributes.InstanceType != instanceType {
		return 0
	}
	for _, term := range entry.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			if price, err := strconv.ParseFloat(cmp.Or(dimension.PricePerUnit.USD, "0"), 64); err == nil && price > 0 {
				return price
			}
		}
	}
	return 0
}
