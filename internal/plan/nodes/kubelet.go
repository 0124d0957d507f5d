package nodes

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// From 1.15 on, the CRD leaves the field kubelet of an EC2NodeClass open, and the controller checks it: a class with a wrong
// one is not Ready (ValidateKubeletConfig in its pkg/apis/v1, Reconcile and validateKubeletFieldsSupported in its
// pkg/controllers/nodeclass/validation.go). Fields and types are those of the catalogue's schema of the kubelet's
// configuration, which readSchema puts into the CRD. The method kubelet has the rest.
var (
	evictionSignals = []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
		"pid.available"}
	reservedResources = []string{"cpu", "memory", "ephemeral-storage", "pid"}
	// mostOf are the largest values of numbers that must not be negative.
	mostOf = map[string]int64{"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 100, "podsPerCore": math.MaxInt32,
		"evictionMaxPodGracePeriod": math.MaxInt32, "maxPods": math.MaxInt32}
	// supported are the fields that Karpenter translates for AMI families that do not take the configuration as it is.
	supported  = map[string][]string{familyAL2: append(translated, "podsPerCore"), familyBottlerocket: translated}
	translated = []string{"clusterDNS", "cpuCFSQuota", "evictionHard", "evictionMaxPodGracePeriod", "evictionSoft",
		"evictionSoftGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "kubeReserved", "maxPods", "systemReserved"}
)

// kubeletSince is the oldest version of the catalogue whose controller checks the field kubelet.
func kubeletSince() string {
	return apis()[slices.IndexFunc(apis(), func(a *api) bool { return a.checksKubelet })].Version
}

// inKubelet reports whether a path is in the field kubelet and Karpenter checks it instead of the API server.
func (d *draft) inKubelet(path []string) bool {
	return d.kind == "EC2NodeClass" && len(path) > 2 && path[1] == "kubelet" && d.api.checksKubelet
}

// kubelet refuses what makes Karpenter's controller reject the field kubelet.
func (d *draft) kubelet() findings {
	k := kubelet{draft: d, given: inner(d.spec(), "kubelet")}
	if d.kind != "EC2NodeClass" || !d.api.checksKubelet || k.given == nil {
		return nil
	}
	k.fields()
	k.evictions()
	k.reserved()
	k.family()
	return k.found
}

type kubelet struct {
	*draft
	given map[string]any
	found findings
}

// reject adds a problem with the value at a path below kubelet, unless there is one.
func (k *kubelet) reject(path []string, value any, why, instead string) {
	from := k.blame(append([]string{"kubelet"}, path...)...)
	if !slices.ContainsFunc(k.found, func(known params.Problem) bool { return known.Parameter == from.parameter && known.Path == from.path }) {
		k.found.refuse(from, "is %s, which Karpenter rejects from %s on: %s; %s", params.Shown(value), kubeletSince(), why, instead)
	}
}

// fields checks single fields.
func (k *kubelet) fields() {
	properties := k.api.schemas[k.kind]().at([]string{"spec", "kubelet"}).Properties
	for _, name := range slices.Sorted(maps.Keys(k.given)) {
		path, format := []string{name}, ""
		if v := properties[name].ValueValidation; v != nil {
			format = v.Format
		}
		most, limited := mostOf[name]
		switch value := k.given[name].(type) {
		case int64:
			switch {
			case limited && (value < 0 || value > most):
				k.reject(path, value, "allowed is 0 to "+strconv.FormatInt(most, 10), "write one of these")
			case format == "int32" && int64(int32(value)) != value:
				k.reject(path, value, "it has 32 bits", "write a smaller number")
			}
		case string:
			if _, err := time.ParseDuration(value); format == "duration" && err != nil {
				k.reject(path, value, "it is a duration", "write, for example, 30s or 1h30m")
			}
			if name == "maxPods" && !k.expressions {
				k.reject(path, value, "a text is a CEL expression, and takes settings.awsFeatureGates.nodeClassCEL in "+params.ParamController,
					"write a whole number without quotes")
			}
		}
	}
	if k.given["registerWithTaints"] != nil {
		k.reject([]string{"registerWithTaints"}, k.given["registerWithTaints"], "Karpenter sets it from the pool's taints",
			"write nodePool.template.spec.taints")
	}
	high, hasHigh := k.given["imageGCHighThresholdPercent"].(int64)
	low, hasLow := k.given["imageGCLowThresholdPercent"].(int64)
	if hasHigh && hasLow && high <= low {
		k.reject([]string{"imageGCHighThresholdPercent"}, high,
			fmt.Sprintf("it must be greater than imageGCLowThresholdPercent, which is %d", low), "write a greater one")
	}
}

// evictions checks the fields whose keys are eviction signals. Quantities that cannot be read are refused for all versions.
func (k *kubelet) evictions() {
	for _, field := range []string{"evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"} {
		list := inner(k.given, field)
		for _, signal := range slices.Sorted(maps.Keys(list)) {
			path, value := []string{field, signal}, list[signal]
			text, _ := value.(string)
			if !slices.Contains(evictionSignals, signal) {
				k.reject(path, value, "allowed signals are "+strings.Join(evictionSignals, ", "),
					params.DidYouMean(signal, evictionSignals, "write one of these"))
				continue
			}
			percent, isPercent := strings.CutSuffix(text, "%")
			switch {
			case field == "evictionSoftGracePeriod":
				if length, err := time.ParseDuration(text); err != nil || length < 0 {
					k.reject(path, value, "allowed is a duration that is not negative", "write, for example, 1m30s")
				}
				continue
			case isPercent:
				if number, err := strconv.ParseFloat(percent, 64); err != nil || number < 0 || number > 100 {
					k.reject(path, value, "allowed is 0% to 100%, or a quantity", `write, for example, "5%" or "100Mi"`)
				}
			case readableQuantity(text):
				if quantity := resource.MustParse(text); quantity.Sign() < 0 {
					k.reject(path, value, "allowed is a quantity that is not negative", `write, for example, "100Mi"`)
				}
			}
		}
	}
	soft, grace := inner(k.given, "evictionSoft"), inner(k.given, "evictionSoftGracePeriod")
	alone := func(field, other string, has, needs map[string]any) {
		for _, signal := range slices.Sorted(maps.Keys(has)) {
			if _, is := needs[signal]; !is && slices.Contains(evictionSignals, signal) {
				k.reject([]string{field, signal}, has[signal], "it has no "+other, "write "+other+" for the same signal too")
			}
		}
	}
	alone("evictionSoft", "evictionSoftGracePeriod", soft, grace)
	alone("evictionSoftGracePeriod", "evictionSoft", grace, soft)
}

// reserved checks the resources that are reserved for a node's own processes.
func (k *kubelet) reserved() {
	for _, field := range []string{"kubeReserved", "systemReserved"} {
		list := inner(k.given, field)
		for _, name := range slices.Sorted(maps.Keys(list)) {
			text, _ := list[name].(string)
			switch path := []string{field, name}; {
			case !slices.Contains(reservedResources, name):
				k.reject(path, text, "allowed resources are "+strings.Join(reservedResources, ", "),
					params.DidYouMean(name, reservedResources, "write one of these"))
			case strings.HasPrefix(text, "-"):
				k.reject(path, text, "allowed is a quantity that is not negative", "write, for example, 100m")
			}
		}
	}
}

// translation returns the AMI family, and the fields of kubelet that reach its nodes. limited is false if all do.
func (d *draft) translation() (family string, fields []string, limited bool) {
	family, _ = d.spec()["amiFamily"].(string)
	if family = strings.ToLower(family); family == "" {
		family = aliasFamily(d.spec())
	}
	fields, limited = supported[family]
	return family, fields, limited
}

// family checks what does not reach nodes of the AMI family. Older versions leave it out.
func (k *kubelet) family() {
	family, fields, limited := k.translation()
	if !limited {
		return
	}
	for _, name := range k.api.schemas[k.kind]().fields([]string{"spec", "kubelet"}) {
		if k.given[name] != nil && !slices.Contains(fields, name) {
			k.reject([]string{name}, k.given[name], "nodes of "+display(family)+" have no setting for it", "leave it out, or use the AMIs of AL2023")
		}
	}
	if addresses, _ := k.given["clusterDNS"].([]any); len(addresses) > 1 {
		k.reject([]string{"clusterDNS"}, addresses, "nodes of "+display(family)+" take one address, and older versions leave the others out",
			"write one, or use the AMIs of AL2023")
	}
}

// evaluates reports whether the controller evaluates CEL expressions in the field kubelet.
func evaluates(config params.Config) bool {
	gates := inner(config.ControllerValues, "settings", "awsFeatureGates")
	return fmt.Sprint(gates["nodeClassCEL"]) == "true"
}
