package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// services are the services that Karpenter and its nodes call, by the last part of their endpoints' names. Karpenter
// also calls Pricing and IAM, but these have endpoints in few regions.
var services = []string{"ec2", "ecr.api", "ecr.dkr", "eks", "s3", "sqs", "ssm", "sts"}

func endpoints(o *Observed, found *findings) {
	if !o.Config.IsolatedVPC && o.PublicAPI {
		return
	}
	wanted := services
	if o.Association || o.addOn(agent) != nil {
		wanted = append(slices.Clone(wanted), "eks-auth")
	}
	var missing, private []string
	for _, service := range wanted {
		switch there, used := o.endpoint(service); {
		case !there:
			missing = append(missing, service)
		case !used:
			private = append(private, service)
		}
	}
	severity, do := Fails, "Create them, in subnets and for route tables of the nodes. Karpenter makes instance profiles through IAM, "+
		"whose endpoint service is in us-east-1 alone: from elsewhere it needs an endpoint across regions (--service-region us-east-1), "+
		"or another way there, such as a proxy."
	if !o.Config.IsolatedVPC {
		severity, do = Info, "Where the nodes' subnets have no NAT gateway, create them, in those subnets and for their route tables; "+
			"else there is nothing to do."
	}
	if len(missing) > 0 {
		found.add(severity, fmt.Sprintf("VPC %s has no available endpoint for %s", o.Facts.Cluster.VPC, strings.Join(missing, ", ")), do,
			o.createEndpoints(missing)...)
	}
	if len(private) > 0 {
		found.add(severity,
			fmt.Sprintf("the VPC endpoints for %s have no private DNS, so nothing in the VPC uses them", strings.Join(private, ", ")),
			"Enable private DNS on them (aws ec2 modify-vpc-endpoint --private-dns-enabled).")
	}
}

// endpoint reports whether the VPC has an available endpoint for a service, and whether the VPC uses one: an interface
// endpoint without private DNS is not used, but a gateway endpoint may be there beside it.
func (o *Observed) endpoint(service string) (there, used bool) {
	for _, e := range o.Endpoints {
		if strings.HasSuffix(e.Service, "."+o.Facts.Cluster.Region+"."+service) && strings.EqualFold(e.State, "available") {
			there, used = true, used || e.Type != "Interface" || e.PrivateDNS
		}
	}
	return there, used
}

// createEndpoints returns commands for the reader to complete: the subnets and security groups of an endpoint are the
// reader's choice.
func (o *Observed) createEndpoints(services []string) (commands []string) {
	prefix := "com.amazonaws."
	if o.Facts.Cluster.Partition == "aws-cn" {
		prefix = "cn.com.amazonaws."
	}
	for _, s := range services {
		kind := "--vpc-endpoint-type Interface --private-dns-enabled --subnet-ids SUBNETS --security-group-ids " + o.Facts.Cluster.SecurityGroup
		if s == "s3" {
			kind = "--vpc-endpoint-type Gateway --route-table-ids TABLES"
		}
		commands = append(commands,
			fmt.Sprintf("aws ec2 create-vpc-endpoint --vpc-id %s --service-name %s%s.%s %s", o.Facts.Cluster.VPC, prefix,
				o.Facts.Cluster.Region, s, kind))
	}
	return commands
}

// Free addresses of a subnet. Below noAddresses they are fewer than one large node needs, below fewAddresses fewer than
// a handful of nodes need.
const noAddresses, fewAddresses = 16, 64

func subnets(o *Observed, found *findings) {
	var few []string
	full := 0
	for _, s := range o.Facts.Subnets {
		free := o.Free[s.ID]
		if free < noAddresses {
			full++
		}
		if free < fewAddresses {
			few = append(few, fmt.Sprintf("%s (%s) has %d", s.ID, s.Zone, free))
		}
	}
	if len(few) > 0 {
		found.add(failsIf(full == len(o.Facts.Subnets)), "free addresses are few: subnet "+some(few),
			"Add subnets to the node groups or name others in subnet_ids; "+
				"a VPC can take a further CIDR block (aws ec2 associate-vpc-cidr-block). "+
				"Prefix delegation of the VPC CNI takes more addresses for each node, not fewer.")
	}
}

// discovery finds what a full pass would tag. A tag of another cluster is a problem of the pass itself.
func discovery(o *Observed, found *findings) {
	var untagged []string
	for _, each := range slices.Concat(o.Facts.Subnets, o.Facts.SecurityGroups) {
		if each.Tags[ownership.TagDiscovery] == "" {
			untagged = append(untagged, each.ID)
		}
	}
	if (o.on() || o.Params["karpenter_auth_mode"] == "true") && len(untagged) > 0 {
		found.add(Warns, fmt.Sprintf("%s lack the tag %s=%s", some(untagged), ownership.TagDiscovery, o.Facts.Cluster.Name),
			"A full pass tags them; the hourly audit requests one. To run one now:", o.request(`,\"full\":true`))
	}
}

// request returns the command that requests a pass. more is further members of the detail of its event, as they are written in JSON.
func (o *Observed) request(more string) string {
	return fmt.Sprintf(`aws events put-events --entries '[{"EventBusName":"%s","Source":"operator",`+
		`"DetailType":"Rack Reconcile Requested","Detail":"{\"rack\":\"%s\"%s}"}]'`, ownership.Bus, o.Rack, more)
}
