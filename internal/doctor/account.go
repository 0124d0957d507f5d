package doctor

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// standard matches the instance types that count against EC2's "Standard" vCPU quotas: families A, C, D, H, I, M, R, T
// and Z.
var standard = regexp.MustCompile(`^(a|c|d|h|i|im|is|m|r|t|z)[0-9]`)

// nodeVCPU is the number of vCPUs of a small node. If fewer are left of the quota, no node can be launched.
const nodeVCPU = 2

func vcpuQuota(o *Observed, found *findings) {
	for _, q := range []struct {
		quota Quota
		kind  string
	}{{OnDemandVCPU, "on-demand"}, {SpotVCPU, "spot"}} {
		limit := 0
		for _, p := range o.pools() {
			if p.launches(q.kind) {
				limit += p.vCPU()
			}
		}
		used, ours := 0, 0
		for _, i := range o.Instances {
			if i.Spot != (q.kind == "spot") || !standard.MatchString(i.Type) {
				continue
			}
			used += i.VCPU
			if i.Tags[ownership.TagEKSCluster] == o.Facts.Cluster.Name && i.Tags[ownership.LabelPool] != "" {
				ours += i.VCPU
			}
		}
		allowed := int(o.Quotas[q.quota])
		full := allowed-used < nodeVCPU
		if limit > 0 && (full || allowed-(used-ours) < limit) {
			found.add(failsIf(full),
				fmt.Sprintf("the account may run %d vCPUs of standard %s instances and runs %d, %d of them on Karpenter's nodes; "+
					"the pools may grow to %d", allowed, q.kind, used, ours, limit),
				"Ask for a higher quota, or lower the pools' limits to what there is.", raise(q.quota, used-ours+limit))
		}
	}
}

func raise(q Quota, wanted int) string {
	return fmt.Sprintf("aws service-quotas request-service-quota-increase --service-code %s --quota-code %s --desired-value %d", q.Service,
		q.Code, wanted)
}

// spare is how much of a quota should be left for other uses.
const spare = 10

func iamQuota(o *Observed, found *findings) {
	roles := 2
	if o.Config.BuildNodes && o.Config.BuildMinimalRole {
		roles++
	}
	for _, q := range []struct {
		what  string
		needs int
		code  string
	}{{"Roles", roles, "L-FE177D64"}, {"InstanceProfiles", len(o.pools()), "L-6E65F664"}} {
		quota, used, needs := o.Account[q.what+"Quota"], o.Account[q.what], q.needs
		if o.on() {
			needs = 0
		}
		if left := quota - used; quota > 0 && left < needs+spare {
			found.add(failsIf(left < needs),
				fmt.Sprintf("the account has %d of %d %s; this rack needs %d more", used, quota, q.what, needs),
				"Delete unused ones, or ask for a higher quota.",
				raise(Quota{"iam", q.code}, quota+quota/2)+" --region us-east-1")
		}
	}
}

// held warns of the stack's hold.
func held(o *Observed, found *findings) {
	if o.Held != "" {
		found.add(Warns, o.Held, "Ask the operator of the stack, who writes the hold.",
			"aws ssm get-parameter --name PREFIX-OF-THE-STACK/hold --query Parameter.Value --output text")
	}
}

// spareParameters is how many parameters should be left: enough for ten racks with every parameter registered.
const spareParameters = 500

func parameterQuota(o *Observed, found *findings) {
	if left := ownership.MostParameters - o.Parameters; left < spareParameters {
		found.add(failsIf(left < 1),
			fmt.Sprintf("the account has %d of %d standard parameters in this region", o.Parameters, ownership.MostParameters),
			"Delete those that nobody needs: of a rack's, the ones that say unset only keep a pattern. The quota cannot be raised; "+
				"advanced parameters have one of their own.",
			"aws ssm get-parameters-by-path --path PATH-OF-THE-RACK/params --query 'Parameters[?Value==`unset`].Name' --output text")
	}
}

func ruleQuota(o *Observed, found *findings) {
	quota := int(o.Quotas[RulesPerBus])
	left := quota - o.Rules
	if left >= spare || o.on() && left > 0 {
		return
	}
	found.add(failsIf(left < 1 && !o.on()), fmt.Sprintf("the default bus has %d of %d rules", o.Rules, quota),
		"Delete unused rules, or ask for a higher quota.", raise(RulesPerBus, quota+quota/2))
}

// createSpotRole is the command that creates EC2's service-linked role for spot.
const createSpotRole = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"

func organization(o *Observed, found *findings) {
	if len(o.Limited) > 0 {
		found.add(Fails, fmt.Sprintf("the permissions boundary of %s does not allow %s", o.ControllerRole, strings.Join(o.Limited, ", ")),
			"If the stack was deployed with boundaryArn, have that policy allow what the stack's own ControllerBoundary does; otherwise send a "+
				"full Rack Reconcile Requested, which sets the stack's present boundary.")
	}
	if len(o.Denied) > 0 {
		found.add(Fails, "policies of the organization deny "+strings.Join(o.Denied, ", "),
			"Ask who keeps the organization's service control policies to exempt the rack's roles, "+
				ownership.ControllerRole(o.Rack)+"*, or to allow these actions in this region.")
	}
}
