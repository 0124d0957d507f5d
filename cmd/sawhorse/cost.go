package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func costCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cost RACK", Short: "Print what the nodes of the rack's cluster cost", Args: exactly("RACK"), ValidArgsFunction: completeRack,
		Long: `Prints, for each pool and each node group, the nodes, how much of their vCPU and memory pods ask for, and dollars an hour at
today's prices: on-demand prices of AWS's list, and the spot price of the node's zone. Discounts and volumes are not in them.
The last line has the nodes that the node groups had when Karpenter was turned on, at today's prices too.

It reads nodes and pods with the same credentials, as ` + "`sawhorse doctor`" + ` does.

Exit codes: 0 printed; 1 there is no such rack; 2 wrong use; 3 AWS or the cluster could not be read, or a price is not known.` + aboutCloud,
	}
	format := outputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error { return looking(cost(c.Context(), args[0], *format)) }
	return c
}

func cost(ctx context.Context, rack, format string) error {
	config, err := account(ctx)
	if err != nil {
		return err
	}
	parameters := ssm.NewFromConfig(config)
	all, err := stored(ctx, parameters, rack)
	if err != nil {
		return err
	}
	b := bill{Rack: rack, Cluster: params.Parse(params.Input{Rack: rack, Params: all}).Config.ClusterName}
	if b.before, err = baseline(ctx, parameters, rack); err != nil {
		return err
	}
	clusters := eks.NewFromConfig(config)
	found, err := clusters.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &b.Cluster})
	if err != nil {
		return fmt.Errorf("cluster %s: describe: %w", b.Cluster, err)
	}
	client, err := k8s.Dial(config, clusters)(ctx, plan.Cluster{Name: b.Cluster, ARN: aws.ToString(found.Cluster.Arn)})
	if err != nil {
		return err
	}
	list := market{region: config.Region, ec2: ec2.NewFromConfig(config), now: time.Now,
		prices: pricing.NewFromConfig(config, func(o *pricing.Options) { o.Region = pricingRegion(config.Region) })}
	return b.conclude(ctx, client, list, os.Stdout, format)
}

// bill is what the nodes of a cluster cost.
type bill struct {
	Rack    string `json:"rack"`
	Cluster string `json:"cluster"`
	// Groups are the pools, then the node groups, then the nodes that are in neither.
	Groups []expense `json:"groups"`
	Total  expense   `json:"total"`
	// Baseline is what the node groups had when Karpenter was turned on; nil if that is not recorded.
	Baseline *former `json:"baseline,omitempty"`

	before []plan.Bought
}

// expense is what some nodes cost. Bought is what the machines have, Asked what the pods on them request.
type expense struct {
	Name        string  `json:"name,omitempty"`
	Nodes       int     `json:"nodes"`
	CPUBought   float64 `json:"cpuBought"`
	CPUAsked    float64 `json:"cpuAsked"`
	GiBBought   float64 `json:"memoryGiBBought"`
	GiBAsked    float64 `json:"memoryGiBAsked"`
	DollarsHour float64 `json:"dollarsAnHour"`
	// Unpriced is the number of nodes whose price is not known: they are not in DollarsHour.
	Unpriced int `json:"unpriced,omitempty"`
}

// conclude reads the cluster and the prices, and prints the bill.
func (b bill) conclude(ctx context.Context, client *k8s.Client, list market, to io.Writer, format string) error {
	waiting := newProgress()
	defer waiting.end()
	waiting.say("reading nodes and pods")
	nodes, err := k8s.Typed[corev1.Node](ctx, client, k8s.Node, "", "")
	if err != nil {
		return err
	}
	pods, err := k8s.Typed[corev1.Pod](ctx, client, k8s.Pod, "", "")
	if err != nil {
		return err
	}
	prices := map[offer]float64{}
	for i := range nodes {
		prices[offerOf(&nodes[i])] = 0
	}
	for of := range prices {
		waiting.say("asking for the price of " + of.instanceType)
		if of.instanceType == "" {
			continue
		}
		if prices[of], err = list.price(ctx, of); err != nil {
			return err
		}
	}
	waiting.say("asking for the prices of the nodes before Karpenter")
	former, err := list.former(ctx, b.before)
	if err != nil {
		return err
	}
	waiting.end()
	b.add(nodes, pods, prices)
	b.compare(former)
	if format == "json" {
		err = printJSON(b)
	} else {
		err = b.print(to)
	}
	if err != nil {
		return err
	}
	return b.incomplete()
}

// incomplete returns the error for prices that are not known.
func (b bill) incomplete() error {
	switch {
	case b.Total.Unpriced > 0:
		return undecided(fmt.Sprintf("the price of %d of %d nodes is not known; they are not in the sum", b.Total.Unpriced, b.Total.Nodes))
	case b.Baseline != nil && b.Baseline.Unpriced > 0:
		return undecided(fmt.Sprintf("the price of %d of the %d nodes before Karpenter is not known; they are not in the sum",
			b.Baseline.Unpriced, b.Baseline.Nodes))
	}
	return nil
}

// add adds up nodes with the requests of their pods. Pods that have ended request nothing any more.
func (b *bill) add(nodes []corev1.Node, pods []corev1.Pod, prices map[offer]float64) {
	groups, of := map[string]*expense{}, map[string]*expense{}
	for i := range nodes {
		node := &nodes[i]
		name := groupOf(node)
		if groups[name] == nil {
			groups[name] = &expense{Name: name}
		}
		of[node.Name] = groups[name]
		price := prices[offerOf(node)]
		for _, e := range []*expense{groups[name], &b.Total} {
			e.Nodes++
			e.CPUBought += node.Status.Capacity.Cpu().AsApproximateFloat64()
			e.GiBBought += node.Status.Capacity.Memory().AsApproximateFloat64() / (1 << 30)
			if e.DollarsHour += price; price == 0 {
				e.Unpriced++
			}
		}
	}
	for i := range pods {
		pod := &pods[i]
		if of[pod.Spec.NodeName] == nil || k8s.Ended(pod.Status.Phase) {
			continue
		}
		asked := k8s.Requests(pod)
		for _, e := range []*expense{of[pod.Spec.NodeName], &b.Total} {
			e.CPUAsked += asked.Cpu().AsApproximateFloat64()
			e.GiBAsked += asked.Memory().AsApproximateFloat64() / (1 << 30)
		}
	}
	b.Groups = []expense{}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		b.Groups = append(b.Groups, *groups[name])
	}
	slices.SortStableFunc(b.Groups, func(a, b expense) int { return cmp.Compare(rank(a.Name), rank(b.Name)) })
}

// groupOf names the pool or the node group of a node.
func groupOf(node *corev1.Node) string {
	if pool := node.Labels[ownership.LabelPool]; pool != "" {
		return "pool " + pool
	}
	if group := node.Labels[ownership.LabelNodeGroup]; group != "" {
		return "group " + group
	}
	return "other"
}

// rank orders pools before node groups, and these before other nodes.
func rank(name string) int { return map[byte]int{'p': 0, 'g': 1, 'o': 2}[name[0]] }

func (b bill) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "NODES\tVCPU\tASKED\tIDLE\tGIB\tASKED\tIDLE\t$/HOUR\t  OF")
	b.Total.Name = "all nodes"
	for _, e := range append(slices.Clone(b.Groups), b.Total) {
		fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%s\t%.1f\t%.1f\t%s\t%s\t  %s\n", e.Nodes, e.CPUBought, e.CPUAsked, idle(e.CPUBought, e.CPUAsked),
			e.GiBBought, e.GiBAsked, idle(e.GiBBought, e.GiBAsked), dollars(e.DollarsHour, e.Nodes, e.Unpriced), e.Name)
	}
	if was := b.Baseline; was != nil {
		fmt.Fprintf(table, "%d\t%.1f\t-\t-\t%.1f\t-\t-\t%s\t  %s\n", was.Nodes, was.CPUBought, was.GiBBought,
			dollars(was.DollarsHour, was.Nodes, was.Unpriced), "node groups before Karpenter"+was.difference())
	}
	return table.Flush()
}

// dollars formats a sum without the nodes whose price is not known.
func dollars(sum float64, nodes, unpriced int) string {
	switch {
	case unpriced == nodes && nodes > 0:
		return "?"
	case unpriced > 0:
		return fmt.Sprintf(">%.4f", sum)
	}
	return fmt.Sprintf("%.4f", sum)
}

// idle returns what pods leave of what was bought, in percent.
func idle(bought, asked float64) string {
	if bought == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*(1-asked/bought))
}
