package nodes

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// amis refuses amiSelectorTerms that the CRD accepts but for which Karpenter or EC2 finds no AMI. With them the
// EC2NodeClass would never become Ready.
func (d *draft) amis() (found findings) {
	for i, term := range objects(d.spec()["amiSelectorTerms"]) {
		at := func(field string) origin {
			return d.blame("amiSelectorTerms", strconv.Itoa(i), field)
		}
		if alias, is := term["alias"].(string); is {
			found.wrongAlias(at("alias"), alias)
		}
		if owner, is := term["owner"].(string); is && !accountID.MatchString(owner) && !slices.Contains(owners, owner) {
			found.refuse(at("owner"), "is %s, which is no owner of AMIs to EC2; allowed are an account of 12 digits, %s; write one of these",
				params.Quoted(owner), strings.Join(owners, ", "))
		}
		if name, is := term["ssmParameter"].(string); is && !public(name) {
			found.refuse(at("ssmParameter"), "is %s, which Karpenter may not read: its role reads AWS's public parameters (/aws/service/…) only; "+
				"write the AMI's id, or its name and owner", params.Quoted(name))
		}
	}
	return found
}

var (
	imageID = regexp.MustCompile(`^ami-([0-9a-f]{8}|[0-9a-f]{17})$`)
	// owners are the owner aliases that EC2's DescribeImages accepts besides account IDs.
	owners = []string{"self", "amazon", "aws-marketplace"}
)

// public reports whether an SSM parameter, given by its name or ARN, is one of AWS's public parameters.
func public(name string) bool { return publicParameter.MatchString(name) }

// A version or a label may follow the name.
var publicParameter = regexp.MustCompile(
	`^(arn:[a-z-]+:ssm:[a-z0-9-]+::parameter)?/aws/service(/[a-zA-Z0-9_.-]+)+(:[a-zA-Z0-9_.-]+)?$`)

// Patterns of AMI versions. Amazon Linux AMIs optimized for EKS are versioned by their release date. Bottlerocket AMIs
// have three numbers, with or without a leading v and a commit.
var (
	dated    = regexp.MustCompile(`^v20[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$`)
	released = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-f]{8})?$`)
	notDigit = regexp.MustCompile(`[^0-9]`)
)

// aliasFamilies are the families of aliases for Linux.
var aliasFamilies = []string{familyAL2, familyAL2023, familyBottlerocket}

// wrongAlias refuses an alias for which Karpenter finds no AMI. Karpenter's functions EC2NodeClass.Alias and Hash end
// the process if an alias is not family@version, and the CRD accepts a second @.
func (f *findings) wrongAlias(from origin, alias string) {
	family, version, found := strings.Cut(alias, "@")
	known := slices.Contains(aliasFamilies, family)
	switch {
	case strings.HasPrefix(strings.ToLower(family), "windows"): // refused as a whole
	case !known || !found || strings.Contains(version, "@"):
		instead := cmp.Or(params.Nearest(family, aliasFamilies), familyAL2023)
		f.refuse(from, "is %s, which is no family@version that Karpenter can read; families are %s; write, for example, %s@latest",
			params.Quoted(alias), strings.Join(aliasFamilies, ", "), instead)
	case version == ec2.AliasVersionLatest:
	case family == familyBottlerocket && !released.MatchString(version):
		f.refuse(from, "is %s, and Bottlerocket has no such version; allowed are latest and a release like v1.40.0; "+
			"write, for example, bottlerocket@latest", params.Quoted(alias))
	case family != familyBottlerocket && !dated.MatchString(version):
		instead := ec2.AliasVersionLatest
		if digits := "v" + notDigit.ReplaceAllString(version, ""); dated.MatchString(digits) {
			instead = digits
		}
		f.refuse(from, "is %s, and EKS has no AMI of such a version; allowed are latest and v with the date of a release (vYYYYMMDD); write, "+
			"for example, %s@%s", params.Quoted(alias), family, instead)
	}
}

// withoutAL2 reports whether an alias is of Amazon Linux 2, and the cluster runs a version of Kubernetes that has none. This is known
// where nothing was looked up, too.
func (c Compiled) withoutAL2(alias string) bool {
	var major, minor int
	_, err := fmt.Sscanf(c.version, "%d.%d", &major, &minor)
	return err == nil && major == 1 && minor >= plan.WithoutAL2 && strings.HasPrefix(alias, "al2@")
}

// tooOld is the instance family whose processors, the first generation of Graviton, do not run Amazon Linux 2023.
// AL2023 requires ARMv8.2 with the cryptography extension; without it the kernel panics.
const tooOld = "a1"

// tooOld refuses the family a1 in a pool of AL2023 nodes: they never join the cluster.
func (d *draft) tooOld() (found findings) {
	if d.kind != "NodePool" || aliasFamily(d.class.spec()) != familyAL2023 {
		return nil
	}
	requirements := d.requirements()
	if slices.ContainsFunc(requirements, func(r requirement) bool { return r.Key == keyArch && r.allows != nil && !r.allows.Has("arm64") }) {
		return nil // they are never chosen
	}
	for _, r := range requirements {
		for _, value := range r.Values {
			family, _, _ := strings.Cut(value, ".")
			if r.Operator == "In" && family == tooOld && (r.Key == keyFamily || r.Key == keyType) {
				found.refuse(r.from, "has %s, whose first Graviton processors do not boot Amazon Linux 2023: such a node never joins the cluster; "+
					"take it out, and write, for example, t4g or m7g", value)
			}
		}
	}
	return found
}

// images adds warnings about IDs that do not look like AMI IDs. Only EC2 knows which AMIs exist.
func (a *findings) images(d *draft) {
	for i, term := range objects(d.spec()["amiSelectorTerms"]) {
		if id, is := term["id"].(string); is && !imageID.MatchString(id) {
			a.warn(d.blame("amiSelectorTerms", strconv.Itoa(i), "id"), "%s is not the ID of an AMI, so Karpenter may find none: "+
				"EC2's IDs are ami- and 17 (or 8) hexadecimal digits; write, for example, ami-0123456789abcdef0, or name and owner", params.Quoted(id))
		}
	}
}
