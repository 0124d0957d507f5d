package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
)

func whyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "why NODE|POOL", Short: "Print why a node is there, and what keeps it", Args: exactly("NODE or POOL"),
		ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Prints why a node that Karpenter launched is there, what keeps it, and what becomes of it. NODE is the name of a node or of a
NodeClaim, POOL that of a NodePool: then each of its nodes gets a line, and the first that should go is printed whole.

It reads the cluster of your kubeconfig (KUBECONFIG, and --context), with your rights there. With AWS credentials it asks for the price,
too.

Exit codes: 0 printed; 1 there is no such node or pool; 2 wrong use; 3 the cluster could not be read.`,
	}
	format := outputFlag(c, "text", "json")
	cluster := c.Flags().String("context", "", "context of the kubeconfig; the current one, if it is not given")
	c.RunE = func(c *cobra.Command, args []string) error {
		return looking(why(c.Context(), args[0], *cluster, *format))
	}
	return c
}

func why(ctx context.Context, name, cluster, format string) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: cluster}).ClientConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	client, err := k8s.New(config.Host, config)
	if err != nil {
		return err
	}
	waiting := newProgress()
	defer waiting.end()
	waiting.say("reading nodes, pods and Karpenter's events")
	all, err := survey(ctx, client)
	if err != nil {
		return err
	}
	answer, err := all.about(name)
	if err != nil {
		return err
	}
	waiting.say("asking for the price")
	if answer.Node != nil {
		answer.Node.price(ctx)
	}
	waiting.end()
	if format == "json" {
		return printJSON(answer)
	}
	return answer.print(os.Stdout)
}

// price asks AWS for the price of the node. Without an answer, none is printed: it is the smallest part of the answer.
func (n *nodeReason) price(ctx context.Context) {
	config, err := account(ctx)
	if err != nil {
		return
	}
	config.Region = cmp.Or(n.region, config.Region) // the cluster is that of the kubeconfig, wherever it is
	list := market{region: config.Region, ec2: ec2.NewFromConfig(config), now: time.Now,
		prices: pricing.NewFromConfig(config, func(o *pricing.Options) { o.Region = pricingRegion(config.Region) })}
	if price, err := list.price(ctx, n.offer); err == nil && price > 0 {
		n.DollarsHour = &price
	}
}

// about returns the answer for a node, a NodeClaim or a NodePool.
func (s *seen) about(name string) (reason, error) {
	for i := range s.claims {
		if claim := &s.claims[i]; name == claim.Name || name == claim.Status.NodeName {
			return reason{Node: s.explain(claim)}, nil
		}
	}
	if pool := s.pools[name]; pool != nil {
		return s.pool(pool), nil
	}
	return reason{}, refused(fmt.Sprintf("there is no node, NodeClaim or NodePool %s; `kubectl get nodepools,nodeclaims` "+
		"lists those there are; a node of a managed node group is none of Karpenter's", name))
}

func (r reason) print(to io.Writer) error {
	if r.Pool != nil {
		r.Pool.print(to)
	}
	if r.Node != nil {
		r.Node.print(to)
	}
	return nil
}

func (p *poolReason) print(to io.Writer) {
	fmt.Fprintf(to, "pool      %s, %d nodes, %s\n", p.Name, len(p.Nodes), p.Ready)
	for _, line := range p.Budgets {
		fmt.Fprintf(to, "budget    %s\n", line)
	}
	for _, n := range p.Nodes {
		fmt.Fprintf(to, "node      %s  %s  %s  %s\n", n.Name, n.Type, rough(n.age), n.Next)
	}
}

func (n *nodeReason) print(to io.Writer) {
	price := ""
	if n.DollarsHour != nil {
		price = fmt.Sprintf(", %.4f dollars an hour", *n.DollarsHour)
	}
	fmt.Fprintf(to, "node      %s of pool %s (NodeClaim %s), since %s (%s)\n", n.Name, n.Pool, n.Claim,
		n.Since.Format(time.RFC3339), rough(n.age))
	fmt.Fprintf(to, "bought    %s, %s, %s%s\n", n.Type, n.Capacity, n.Zone, price)
	fmt.Fprintf(to, "because   %s\n", n.Because)
	fmt.Fprintf(to, "state     %s\n", strings.Join(n.State, "; "))
	for _, line := range n.Keeps {
		fmt.Fprintf(to, "kept      %s\n", line)
	}
	fmt.Fprintf(to, "next      %s\n", n.Next)
}

// rough formats a duration in its two largest units.
func rough(d time.Duration) string {
	switch d = d.Round(time.Minute); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
}
