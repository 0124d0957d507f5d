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

// offer is what AWS has one price for. Only a spot price has a zone, or anyZone.
type offer struct {
	instanceType, zone string
	windows            bool
}

// anyZone stands for all zones of the region: it is not known in which of them a group's nodes were.
const anyZone = "any"

// product is an entry of AWS's price list: what an instance type costs, in dollars an hour, and what it has.
type product struct{ price, cpu, gib float64 }

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
// Query API endpoints"), and to the accounts of the partitions aws and aws-cn only: it is empty for other regions.
func pricingRegion(region string) string {
	switch area, _, _ := strings.Cut(region, "-"); area {
	case "eusc":
		return ""
	case "us":
		if strings.HasPrefix(region, "us-gov-") || strings.HasPrefix(region, "us-iso") {
			return ""
		}
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
	listed, err := m.onDemand(ctx, of)
	return listed.price, err
}

// spot returns the price that is in force in the zone now, or the mean of those of all zones. In China prices are in yuan.
func (m market) spot(ctx context.Context, of offer) (float64, error) {
	if strings.HasPrefix(m.region, "cn-") {
		return 0, nil
	}
	system := "Linux/UNIX"
	if of.windows {
		system = "Windows"
	}
	in := &ec2.DescribeSpotPriceHistoryInput{
		InstanceTypes:       []ec2types.InstanceType{ec2types.InstanceType(of.instanceType)},
		ProductDescriptions: []string{system}, StartTime: new(m.now()),
	}
	if of.zone != anyZone {
		in.AvailabilityZone = &of.zone
	}
	out, err := m.ec2.DescribeSpotPriceHistory(ctx, in)
	if err != nil {
		return 0, fmt.Errorf("spot price of %s in zone %s: %w", of.instanceType, of.zone, err)
	}
	slices.SortFunc(out.SpotPriceHistory, func(a, b ec2types.SpotPrice) int {
		return aws.ToTime(a.Timestamp).Compare(aws.ToTime(b.Timestamp))
	})
	last := map[string]float64{}
	for _, p := range out.SpotPriceHistory {
		zone := aws.ToString(p.AvailabilityZone)
		if string(p.InstanceType) == of.instanceType && (of.zone == anyZone || of.zone == zone) {
			last[zone], _ = strconv.ParseFloat(aws.ToString(p.SpotPrice), 64)
		}
	}
	sum := 0.0
	for _, price := range last {
		sum += price
	}
	return sum / float64(max(1, len(last))), nil
}

// onDemand returns what the price list has of an instance type; nothing if it does not have it.
func (m market) onDemand(ctx context.Context, of offer) (product, error) {
	if pricingRegion(m.region) == "" {
		return product{}, nil
	}
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
			return product{}, fmt.Errorf("price of %s: %w", of.instanceType, err)
		}
		for _, text := range page.PriceList {
			if listed := productIn(text, of.instanceType); listed.price > 0 {
				return listed, nil
			}
		}
	}
	return product{}, nil
}

// productIn returns what one entry of AWS's list says; nothing if it is that of another type.
func productIn(text, instanceType string) product {
	var entry struct {
		Product struct {
			Attributes struct {
				InstanceType string `json:"instanceType"`
				CPU          string `json:"vcpu"`
				Memory       string `json:"memory"` // such as "1,952 GiB"
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
		return product{}
	}
	var listed product
	listed.cpu, _ = strconv.ParseFloat(entry.Product.Attributes.CPU, 64)
	listed.gib, _ = strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(entry.Product.Attributes.Memory, " GiB"), ",", ""), 64)
	for _, term := range entry.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			if price, err := strconv.ParseFloat(cmp.Or(dimension.PricePerUnit.USD, "0"), 64); err == nil && price > 0 {
				listed.price = price
				return listed
			}
		}
	}
	return product{}
}
