package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// standard matches the instance types that count against EC2's "Standard" vCPU quotas: families A, C, D, H, I, M, R, T
// and Z.
var standard = regexp.MustCompile(`^(a|c|d|h|i|im|is|m|r|t|z)[0-9]`)

// nodeVCPU is the number of vCPUs of a small node. If fewer are left of the quota, no node can be launched.
const nodeVCPU = 2

func vcpuQuota(o *Observed) []Finding {
	var found []Finding
	for _, q := range []struct {
		quota Quota
		kind  string
	}{{OnDemandVCPU, "on-demand"}, {SpotVCPU, "spot"}} {
		limit, asked := 0, slices.DeleteFunc(o.pools(), func(p params.Pool) bool { return !slices.Contains(p.CapacityTypes, q.kind) })
		for _, p := range asked {
			limit += p.CPULimit
		}
		if limit == 0 {
			continue
		}
		used, ours := 0, 0
		for _, i := range o.Instances {
			if i.Spot != (q.kind == "spot") || !standard.MatchString(i.Type) {
				continue
			}
			if used += i.VCPU; i.Tags[ownership.TagEKSCluster] == o.Cluster.Name && i.Tags[ownership.LabelPool] != "" {
				ours += i.VCPU
			}
		}
		allowed := int(o.Quotas[q.quota])
		severity := Warns
		if allowed-used < nodeVCPU {
			severity = Fails
		} else if allowed-(used-ours) >= limit {
			continue
		}
		found = append(found,
			finding(severity,
				fmt.Sprintf("the account may run %d vCPUs of standard %s instances and runs %d, %d of them on Karpenter's nodes; "+
					"the pools may grow to %d", allowed, q.kind, used, ours, limit),
				"Ask for a higher quota, or lower the pools' limits to what there is.", raise(q.quota, used-ours+limit)))
	}
	return found
}

func raise(q Quota, wanted int) string {
	return fmt.Sprintf("aws service-quotas request-service-quota-increase --service-code %s --quota-code %s --desired-value %d", q.Service,
		q.Code, wanted)
}

// spare is how much of a quota should be left for other uses.
const spare = 10

func iamQuota(o *Observed) []Finding {
	var found []Finding
	for _, q := range []struct {
		what  string
		needs int
		code  string
	}{{Roles, 2, "L-FE177D64"}, {Profiles, len(o.pools()), "L-6E65F664"}} {
		quota, used, needs := o.Account[q.what+"Quota"], o.Account[q.what], q.needs
		if o.on() {
			needs = 0
		}
		left := quota - used
		if quota == 0 || left >= needs+spare {
			continue
		}
		severity := Warns
		if left < needs {
			severity = Fails
		}
		found = append(found,
			finding(severity, fmt.Sprintf("the account has %d of %d %s; this rack needs %d more", used, quota, q.what, needs),
				"Delete unused ones, or ask for a higher quota.",
				raise(Quota{"iam", q.code}, quota+quota/2)+" --region us-east-1"))
	}
	return found
}

// spareParameters is how many parameters should be left: enough for ten racks with every parameter registered.
const spareParameters = 500

func parameterQuota(o *Observed) []Finding {
	left := ownership.MostParameters - o.Parameters
	if left >= spareParameters {
		return nil
	}
	severity := Warns
	if left < 1 {
		severity = Fails
	}
	return []Finding{finding(severity,
		fmt.Sprintf("the account has %d of %d standard parameters in this region", o.Parameters, ownership.MostParameters),
		"Delete those that nobody needs: of a rack's, the ones that say unset only keep a pattern. The quota cannot be raised; "+
			"advanced parameters have one of their own.",
		"aws ssm get-parameters-by-path --path PATH-OF-THE-RACK/params --query 'Parameters[?Value==`unset`].Name' --output text")}
}

func ruleQuota(o *Observed) []Finding {
	quota := int(o.Quotas[RulesPerBus])
	left := quota - o.Rules
	if left >= spare || o.RuleExists && left > 0 {
		return nil
	}
	severity := Warns
	if left < 1 && !o.RuleExists {
		severity = Fails
	}
	return []Finding{
		finding(severity, fmt.Sprintf("the default bus has %d of %d rules", o.Rules, quota),
			"Delete unused rules, or ask for a higher quota.", raise(RulesPerBus, quota+quota/2)),
	}
}

func spotRole(o *Observed) []Finding {
	var asked []string
	for _, p := range o.pools() {
		if slices.Contains(p.CapacityTypes, "spot") {
			asked = append(asked, p.Name)
		}
	}
	if o.SpotRole || len(asked) == 0 {
		return nil
	}
	return []Finding{finding(Fails, fmt.Sprintf("pool %s may use spot, and the account has no role AWSServiceRoleForEC2Spot", some(asked)),
		"Create it, once for the account.",
		"aws iam create-service-linked-role --aws-service-name spot.amazonaws.com")}
}

func organization(o *Observed) []Finding {
	if len(o.Denied) == 0 {
		return nil
	}
	return []Finding{finding(Fails, "policies of the organization deny "+strings.Join(o.Denied, ", "),
		"Ask who keeps the organization's service control policies to exempt the rack's roles below the path "+ownership.IAMPath+
			", or to allow these actions in this region.")}
}
