package nodes

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// bootDevice is the device that the AMIs of every Linux family that Karpenter knows boot from.
const bootDevice = "/dev/xvda"

// bottlerocketData is the device where Bottlerocket has images, logs and pods.
const bottlerocketData = "/dev/xvdb"

// volumes checks the block device mappings. The CRD accepts what EBS does not provision, and what ends Karpenter's controller.
func (d *draft) volumes() (found findings) {
	mappings := objects(d.spec()["blockDeviceMappings"])
	for i, mapping := range mappings {
		d.device(&found, mappings[:i], mapping)
		ebs := inner(mapping, "ebs")
		v := volume{findings: &found, draft: d, at: []string{"blockDeviceMappings", strconv.Itoa(i), "ebs"}, ebs: ebs,
			kind: "gp2", of: "gp2, which is EC2's default,"}
		if kind, _ := ebs["volumeType"].(string); kind != "" {
			v.kind, v.of = kind, kind
		}
		v.size()
		iops, given := ebs["iops"].(int64)
		v.iops(iops, given)
		v.throughput(cmp.Or(iops, int64(params.BaseIOPS)))
	}
	return found
}

// device checks what a mapping is about, and that none before it is about the same.
func (d *draft) device(found *findings, before []map[string]any, mapping map[string]any) {
	at := func(field string) origin { return d.blame("blockDeviceMappings", strconv.Itoa(len(before)), field) }
	name := mapping["deviceName"]
	same := slices.IndexFunc(before, func(m map[string]any) bool { return name != nil && m["deviceName"] == name })
	switch {
	case mapping == nil: // no object, which the schema refuses
	case name == nil: // the CRD does not require it, but Karpenter's function ephemeralStorage reads it without a look
		found.refuse(at("deviceName"), "is missing, and Karpenter's controller would end with an error, again and again; write, for example, %q",
			bootDevice)
	case same >= 0:
		found.refuse(at("deviceName"), "is %s, as in blockDeviceMappings[%d], and EC2 launches nothing with two volumes for one device; "+
			"write another device, or leave one out", params.Shown(name), same)
	}
	if _, there := mapping["ebs"]; mapping != nil && !there { // blockDeviceMappings reads this one so
		found.refuse(at("ebs"), "is missing, and Karpenter's controller would end with an error, again and again; write, for example, "+
			`{"volumeSize":"100Gi","volumeType":"gp3","encrypted":true}`)
	}
}

// volume checks one EBS volume. gib is 0 if the size is not known.
type volume struct {
	*findings
	draft *draft
	at    []string
	ebs   map[string]any
	kind  string
	// of is the kind for a sentence.
	of  string
	gib int64
}

// refuse adds a problem with one of the volume's fields. Those of parameters are judged where they are read, for each pool.
func (v *volume) refuse(field, format string, args ...any) {
	if from := v.from(field); from.config {
		v.findings.refuse(from, format, args...)
	}
}

func (v *volume) from(field string) origin {
	return v.draft.blame(append(slices.Clone(v.at), field)...)
}

// sized matches the sizes that Karpenter's CRD accepts, but does not check their upper limit.
var sized = regexp.MustCompile(`^[1-9][0-9]*(Gi|G|Ti|T)$`)

// size reads the volume's size in GiB, as Karpenter rounds it.
func (v *volume) size() {
	text, is := v.ebs["volumeSize"].(string)
	if number, bare := v.ebs["volumeSize"].(int64); bare {
		text, is = strconv.FormatInt(number, 10), true
	}
	switch digits := firstDigits.FindString(text); {
	case !is || text == "":
	case !sized.MatchString(text):
		v.refuse("volumeSize", "is %s; allowed is a text of a whole number and Gi, G, Ti or T; write, for example, \"%sGi\"",
			params.Quoted(text), cmp.Or(digits[:min(len(digits), 5)], "100"))
	case readableQuantity(text):
		quantity := resource.MustParse(text)
		v.gib = int64(math.Ceil(float64(quantity.Value()) / (1 << 30)))
		if nearest, limits, made := params.OutOfSize(v.kind, v.gib); !made {
			v.refuse("volumeSize", "is %s, and EBS makes volumes of type %s %s; write, for example, \"%dGi\", or another volumeType",
				params.Quoted(text), v.of, limits, nearest)
		}
	}
}

var firstDigits = regexp.MustCompile(`^[1-9][0-9]*`)

func (v *volume) iops(iops int64, given bool) {
	limits := params.ProvisionedIOPS(v.kind)
	switch most := limits.MostOf(v.gib); {
	case limits.Most == 0 && given:
		v.refuse("iops", "is %d, and IOPS of a volume of type %s cannot be provisioned; leave it out, or write the volumeType gp3",
			iops, v.of)
	case limits.Most == 0:
	case !given && v.kind != "gp3":
		v.refuse("iops", "is missing, and EC2 makes no volume of type %s without; write, for example, %d",
			v.kind, min(int64(params.BaseIOPS), most))
	case !given:
	case iops < limits.Least || iops > limits.Most:
		v.refuse("iops", "is %d; a volume of type %s has from %d to %d; write one of these",
			iops, v.kind, limits.Least, limits.Most)
	case v.gib > 0 && iops > most:
		v.refuse("iops", "is %d, and EBS provisions at most %d for each GiB of a volume of type %s, and this one has %d GiB; write %d or less, "+
			"or a larger volumeSize", iops, limits.PerGiB, v.kind, v.gib, most)
	}
}

func (v *volume) throughput(iops int64) {
	throughput, given := v.ebs["throughput"].(int64)
	switch {
	case !given:
	case v.kind != "gp3":
		v.refuse("throughput", "is %d, and only that of a gp3 volume can be provisioned; leave it out, or write the volumeType gp3",
			throughput)
	case throughput < params.LeastThroughput || throughput > params.MostThroughput:
		v.refuse("throughput", "is %d; a gp3 volume has from %d to %d MiB/s; write one of these",
			throughput, params.LeastThroughput, params.MostThroughput)
	case throughput > params.ThroughputOf(iops):
		v.refuse("throughput", "is %d MiB/s, and EBS provisions at most a quarter of the volume's IOPS, which are %d; write %d or less, or "+
			"iops of %d", throughput, iops, params.ThroughputOf(iops), params.IOPSOf(throughput))
	}
}

// display returns an AMI family as Karpenter spells it.
func display(family string) string {
	if family == familyBottlerocket {
		return "Bottlerocket"
	}
	return strings.ToUpper(family)
}
