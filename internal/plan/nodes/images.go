package nodes

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Owners of images, as EC2 names them.
const (
	ownerAmazon = "amazon"
	ownerSelf   = "self"
)

// Images returns problems with AMIs that nodes may not run, and warnings about those that are in force already, which the
// plan inForce has (nil if there is none), and about what is unknown. Nodes run images of Amazon and of the deployment's
// owners, and those of the account that have the nodes' tag: any other image, like the backup of a server, would start with
// the rack's user data. The policies of Karpenter's controller say the same of each launch, because a name or a tag may
// select another image later. So a term must select by ID, or by what keeps it to such images.
func (c Compiled) Images(facts plan.Facts, inForce *plan.Plan) (problems, warnings []params.Problem) {
	for _, d := range c.drafts {
		if d.kind != "EC2NodeClass" || d.idle {
			continue
		}
		for i, term := range objects(d.spec()["amiSelectorTerms"]) {
			found := d.image(i, term, facts)
			if found == nil {
				found = c.otherArch(d, i, term, facts)
			}
			if found == nil {
				continue
			}
			switch {
			case selects(inForce, d.name, "amiSelectorTerms", term):
				found.Message += "; it is in force, and no node is launched from it until then"
				warnings = append(warnings, found.Problem)
			case found.unknown:
				found.Message += "; a pass refuses it, unless the stack's context values, which nobody knows here, allow it"
				warnings = append(warnings, found.Problem)
			default:
				problems = append(problems, found.Problem)
			}
		}
	}
	return problems, warnings
}

// specIn returns the spec of an object in a plan, which may be nil; nil if there is none.
func specIn(p *plan.Plan, kind, name string) map[string]any {
	if p == nil {
		return nil
	}
	for _, object := range p.NodePools.Objects {
		if object["kind"] == kind && inner(object, "metadata")["name"] == name {
			return inner(object, "spec")
		}
	}
	return nil
}

// selects reports whether an EC2NodeClass of a plan has a term.
func selects(p *plan.Plan, class, field string, term map[string]any) bool {
	return slices.ContainsFunc(objects(specIn(p, "EC2NodeClass", class)[field]),
		func(of map[string]any) bool { return reflect.DeepEqual(of, term) })
}

// foreign is a problem with a term. It is unknown if a context value of the stack, which is not known, may allow it.
type foreign struct {
	params.Problem
	unknown bool
}

// image judges a term as Karpenter reads it: an alias stands for images of Amazon, an ID or a parameter for one image,
// and everything else is a search (DescribeImageQueries in its pkg/providers/amifamily).
func (d *draft) image(i int, term map[string]any, facts plan.Facts) *foreign {
	has := func(field string) string { text, _ := term[field].(string); return text }
	refuse := func(unknown bool, field, format string, args ...any) *foreign {
		path := []string{"amiSelectorTerms", strconv.Itoa(i)}
		if field != "" {
			path = append(path, field)
		}
		from := d.blame(path...)
		return &foreign{params.NewProblem(from.parameter, from.path, "%s %s", from.name(), fmt.Sprintf(format, args...)), unknown}
	}
	for _, field := range []string{"alias", "id", "ssmParameter"} {
		if value := has(field); value != "" {
			if why := unfit(field, value, facts); why != "" {
				_, seen := facts.Images[value]
				return refuse(seen && facts.Deployment.Unknown, field, "%s", why)
			}
			return nil
		}
	}
	tags, tagged := term["tags"].(map[string]any)
	owner, account := has("owner"), ""
	if facts.Cluster != nil {
		account = facts.Cluster.Account
	}
	_, ofNodes := tags[ownership.TagNodes]
	others := facts.Deployment.ImageOwners
	switch own := owner == ownerSelf || owner == account && account != ""; {
	case has("name") == "" && !tagged, !slices.Contains(owners, owner) && owner != "" && !accountID.MatchString(owner): // refused by others
	case owner == "":
		return refuse(false, "", "has no owner, and so selects images of anybody; write \"owner\":\"amazon\" too or, for images of the account, "+
			"\"owner\":\"self\" and the tag %s", ownership.TagNodes)
	case owner == ownerAmazon, slices.Contains(others, owner), own && (ofNodes || slices.Contains(others, account)):
	case own:
		return refuse(facts.Deployment.Unknown, "", "selects images of the account that are not meant for nodes, like the backup of a server; "+
			"write \"tags\":{%q:\"*\"} too, and give the images that nodes may run that tag", ownership.TagNodes)
	default:
		unknown := facts.Deployment.Unknown || account == "" && accountID.MatchString(owner)
		return refuse(unknown, "owner", "is %s; allowed are %s; write one of these, or have %s added to the stack's context value imageOwners",
			owner, allowedOwners(others), owner)
	}
	return nil
}

// otherArch reports a term that names an image for an architecture that the pool does not launch, if no other term names one for those
// that it does: Karpenter takes for each instance type the image of its architecture.
func (c Compiled) otherArch(class *draft, i int, term map[string]any, facts plan.Facts) *foreign {
	field, image := imageIn(term, facts)
	if image.Arch == "" {
		return nil
	}
	launches := map[string]bool{}
	for _, d := range c.drafts {
		if d.kind == "NodePool" && d.name == class.name {
			for kind := range variantsOf(d.requirements()) {
				launches[strings.Fields(kind)[0]] = true
			}
		}
	}
	launched := func(of map[string]any) bool {
		_, image := imageIn(of, facts)
		return launches[image.Arch]
	}
	// Without any, the requirements are refused.
	if len(launches) == 0 || slices.ContainsFunc(objects(class.spec()["amiSelectorTerms"]), launched) {
		return nil
	}
	from := class.blame("amiSelectorTerms", strconv.Itoa(i), field)
	return &foreign{Problem: params.NewProblem(from.parameter, from.path, "%s is %s, an image for %s, and pool %s launches %s "+
		"only; write one for %[5]s, or requirements that allow %[3]s", from.name(), term[field], image.Arch, class.name,
		slices.Sorted(maps.Keys(launches))[0])}
}

// imageIn returns the image that a term names, and the field that names it.
func imageIn(term map[string]any, facts plan.Facts) (string, plan.Image) {
	for _, field := range []string{"id", "ssmParameter"} {
		value, _ := term[field].(string)
		if image, seen := facts.Images[value]; seen {
			return field, image
		}
	}
	return "", plan.Image{}
}

// unfit says why nodes may not run the image that a field names, or returns "". What EC2 was not asked about is not
// judged.
func unfit(field, value string, facts plan.Facts) string {
	if field == "alias" || facts.Offline || facts.Cluster == nil || field == "ssmParameter" && !public(value) {
		return ""
	}
	c := facts.Cluster
	image, found := facts.Images[value]
	it := value
	if field == "ssmParameter" {
		it += ", which has " + image.ID
	}
	others := facts.Deployment.ImageOwners
	switch {
	case image.State != "":
		return fmt.Sprintf("is %s, an image that is %s; write one that is available", it, image.State)
	case !found && field == "id":
		return fmt.Sprintf("is %s, and EC2 shows account %s no such image in %s; write the ID of one that it may launch there", value,
			c.Account, c.Region)
	case !found:
		return fmt.Sprintf("is %s, and %s has no such parameter with an image that account %s may launch; write one that is there",
			value, c.Region, c.Account)
	case image.Alias == ownerAmazon, slices.Contains(others, image.Owner), image.Alias != "" && slices.Contains(others, image.Alias),
		image.Owner == c.Account && image.OfNodes:
		return ""
	case image.Owner == c.Account:
		return fmt.Sprintf("is %s, an image of the account without the tag %s, and so not meant for nodes, like the backup of a server; write "+
			"another one, or tag it: aws ec2 create-tags --resources %s --tags Key=%s,Value=true", it, ownership.TagNodes, image.ID,
			ownership.TagNodes)
	default:
		return fmt.Sprintf("is %s, an image of %s; allowed are images of %s; write one of these, or have %s added to the stack's context value "+
			"imageOwners", it, image.Owner, allowedOwners(others), image.Owner)
	}
}

// allowedOwners lists the owners whose images nodes may run.
func allowedOwners(others []string) string {
	return strings.Join(append([]string{ownerAmazon}, others...), ", ") + ", and self with the tag " + ownership.TagNodes
}

var accountID = regexp.MustCompile(`^[0-9]{12}$`)
