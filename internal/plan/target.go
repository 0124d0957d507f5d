package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/events"
	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// KarpenterRecord is what is recorded about the Karpenter of a rack.
type KarpenterRecord struct {
	// Version is the version whose controller was Ready last, the version in force. It is empty if Karpenter is off.
	Version string `json:"version,omitempty"`
	// Planned is the version of the last accepted plan with Karpenter.
	Planned string `json:"planned,omitempty"`
	// Before is the version that was in force before Version.
	Before string `json:"before,omitempty"`
	// CRDs is the newest version whose CRDs were installed. CRDs never go back, because stored objects may need them.
	CRDs string `json:"crds,omitempty"`
	// RolledBack is an upgrade that failed, until karpenter_version is written again. It is nil if there is none.
	RolledBack *RolledBack `json:"rolledBack,omitempty"`
}

// RolledBack is a change of Karpenter's version that failed, after which the version in force came back.
type RolledBack struct {
	// Version is the version that failed.
	Version string `json:"version"`
	// Reason says why, in the words of its pods or NodePools.
	Reason string `json:"reason"`
	// Write is the version of the parameter karpenter_version, in Parameter Store, that asked for it.
	Write int64 `json:"write"`
	// Generation is that of the plan that failed.
	Generation int64 `json:"generation,omitempty"`
}

// Used reports whether an event that asked for force has been used for the version that failed. forceAt is the event's
// generation, and now that of the pass. Generations begin again when DynamoDB has deleted an old lease.
func (r *RolledBack) Used(forceAt, now int64) bool {
	return r != nil && forceAt <= r.Generation && r.Generation <= now
}

// InForce returns the version of Karpenter that the rack runs, or "" if it runs none, or none was Ready yet.
func (r Records) InForce() string {
	if !r.WasOn {
		return ""
	}
	return r.Karpenter.Version
}

// inForceOrPlanned returns the version that a rack stays with: the one in force or, before any was Ready, the one that was planned.
func (r Records) inForceOrPlanned() string {
	if !r.WasOn {
		return ""
	}
	return cmp.Or(r.InForce(), r.Karpenter.Planned)
}

// Accept returns what is recorded about Karpenter when a plan for this version of it is accepted.
func (r Records) Accept(version string) KarpenterRecord {
	accepted := r.Karpenter
	accepted.Version, accepted.Planned = r.InForce(), version
	return accepted
}

// target is the version of Karpenter that a plan is for.
type target struct {
	catalogue.Release
	// missing is a version that the plan should be for and that the catalogue does not have.
	missing string
	// failed is the change of version that is not tried again, so that the version in force stays.
	failed *RolledBack
}

// Target returns the version of Karpenter that a rack's plan is for: the version that the parameter names, or else the
// version in force, or the default. A version that failed is not tried again until the parameter is written again.
func Target(config params.Config, facts Facts) catalogue.Release {
	return targetOf(config, facts).Release
}

func targetOf(config params.Config, facts Facts) target {
	records, inForce := facts.Records, facts.Records.InForce()
	wanted, current := config.KarpenterVersion, records.inForceOrPlanned()
	t := target{Release: catalogue.Default()}
	failed := records.Karpenter.RolledBack
	switch {
	case records.WasOn && !config.Enabled: // a removal needs no other version
		wanted = current
	case wanted == "":
		wanted = current
	case inForce != "" && failed != nil && failed.Version == wanted &&
		failed.Write == facts.Writes[params.ParamVersion] && !facts.Force.Has(events.ForceVersion):
		wanted, t.failed = inForce, failed
	}
	if wanted == "" {
		return t
	}
	found, err := catalogue.Find(wanted)
	if err != nil {
		t.missing = wanted
		return t
	}
	t.Release = found
	return t
}

// version checks the version of Karpenter that the plan is for.
func (b *builder) version() {
	inForce, missing := b.facts.Records.InForce(), b.target.missing
	if newest := b.facts.Records.Karpenter.CRDs; missing == "" && newest != "" && !slices.Contains(catalogue.Versions(), newest) {
		missing = newest
	}
	if missing != "" {
		b.problemUnlessDisabling(params.ParamVersion, "the rack has Karpenter %s or its CRDs, which this version of Sawhorse does not have; "+
			"it has %s; deploy a version of Sawhorse that has %s", missing, strings.Join(catalogue.Versions(), ", "), missing)
	}
	if failed := b.target.failed; failed != nil {
		b.warn(params.ParamVersion, "karpenter_version is %s, but Karpenter %s failed here (%s), so %s came back and stays in force; "+
			"write karpenter_version again, or send a request with \"force\": [\"version\"], to try %s once more",
			failed.Version, failed.Version, strings.TrimRight(failed.Reason, ". "), inForce, failed.Version)
	}
	if b.plan.Goal == GoalKarpenter && b.target.missing == "" {
		b.kubernetes(inForce)
	}
}

// kubernetes checks that the version of Karpenter lists the cluster's version of Kubernetes. A version in force stays,
// because the cluster may have been upgraded since.
func (b *builder) kubernetes(inForce string) {
	running, name := b.facts.Cluster.Version, b.config.ClusterName
	if b.target.Kubernetes.Lists(running) {
		return
	}
	instead := "no version that Sawhorse has lists it; use a cluster with a version that is listed"
	if lists := Listing(running); len(lists) > 0 {
		instead = "write karpenter_version " + lists[0] + ", which lists it"
	}
	parameter := params.ParamVersion
	if b.config.KarpenterVersion == "" {
		parameter = "cluster_name"
	}
	if b.target.Version == inForce {
		b.warn(parameter, "cluster %s runs Kubernetes %s; Karpenter %s lists %s, and may not work with others; %s", name, running,
			b.target.Version, b.target.Kubernetes, instead)
		return
	}
	b.problem(parameter, "cluster %s runs Kubernetes %s; Karpenter %s lists %s, and is not installed on others; %s", name, running,
		b.target.Version, b.target.Kubernetes, instead)
}

// WithoutAL2 is the first minor version of Kubernetes for which EKS has no Amazon Linux 2 AMIs. From that version on
// Karpenter refuses the alias (DescribeImageQueries in its pkg/providers/amifamily).
const WithoutAL2 = 33

// Listing returns the versions of Karpenter that list a version of Kubernetes, the oldest first.
func Listing(kubernetes string) (versions []string) {
	for _, release := range catalogue.All() {
		if release.Kubernetes.Lists(kubernetes) {
			versions = append(versions, release.Version)
		}
	}
	return versions
}

// changes reports whether the plan replaces one version of Karpenter by another.
func (b *builder) changes() bool {
	inForce := b.facts.Records.InForce()
	return b.plan.Goal == GoalKarpenter && inForce != "" && inForce != b.target.Version
}

// lowers reports whether the plan replaces the version in force by an older one.
func (b *builder) lowers() bool {
	return b.changes() && catalogue.Compare(b.target.Version, b.facts.Records.InForce()) < 0
}

// definitions returns the version whose CRDs the cluster gets: the newest that it has had. CRDs never go back, because
// objects that are stored may need them.
func (b *builder) definitions() karpenter {
	newest := b.karpenter
	for _, version := range []string{b.facts.Records.InForce(), b.facts.Records.Karpenter.CRDs} {
		if version == "" || catalogue.Compare(version, newest.Version) <= 0 {
			continue
		}
		if release, err := catalogue.Find(version); err == nil {
			newest = versionOf(release)
		}
	}
	return newest
}

// Changing reports whether the plan changes the version of Karpenter, and that is not complete yet.
func (p *Plan) Changing(applied map[string]string) bool {
	return p.Controller.Previous != nil &&
		slices.ContainsFunc(p.Due(applied), func(s Step) bool { return s.Name == "controller/release" })
}

// TakeBack makes a plan whose change of version has failed one for the version that came back, and reports whether it is
// such a plan. Without that, every pass that repairs towards the plan would fail again for the same reason, and never reach
// its later steps.
func (p *Plan) TakeBack(failed *RolledBack) bool {
	c := &p.Controller
	if failed == nil || c.Previous == nil || failed.Version != c.Release.Version || failed.Write != c.Write {
		return false
	}
	c.Release, c.Previous = *c.Previous, nil
	p.SetFingerprints()
	return true
}
