package nodes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// kubernetesValues are the values of the chart that it hands to Kubernetes as they are. Kubernetes' own types tell whether
// the API server could read them.
var kubernetesValues = []struct {
	path string
	into func() any
}{
	{"additionalAnnotations", func() any { return new(map[string]string) }},
	{"affinity", func() any { return new(corev1.Affinity) }},
	{"controller.resources", func() any { return new(corev1.ResourceRequirements) }},
	{"imagePullSecrets", func() any { return new([]corev1.LocalObjectReference) }},
	{"podAnnotations", func() any { return new(map[string]string) }},
	{"podLabels", func() any { return new(map[string]string) }},
	{"serviceMonitor.additionalLabels", func() any { return new(map[string]string) }},
	{"strategy", func() any { return new(appsv1.DeploymentStrategy) }},
	{"tolerations", func() any { return new([]corev1.Toleration) }},
	{"topologySpreadConstraints", func() any { return new([]corev1.TopologySpreadConstraint) }},
}

// limitsBelow refuses limits below what the controller requests, written or not: the API server takes no such pod.
func limitsBelow(written corev1.ResourceRequirements) (problems []params.Problem) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := written.Limits[name]
		request, requested := written.Requests[name]
		if !requested {
			request = resource.MustParse(plan.ControllerRequests[string(name)].(string))
		}
		if limited && limit.Cmp(request) < 0 {
			at := "controller.resources.limits." + string(name)
			problems = append(problems, params.NewProblem(params.ParamController, at, "%s is %s, and the controller requests %s; write a request "+
				"that is not more than the limit too, or a higher limit", at, limit.String(), request.String()))
		}
	}
	return problems
}

// readableResources refuses what is no quantity, before it is decoded: a large exponent takes minutes. It returns the rest.
func readableResources(at string, value any, problems *[]params.Problem) any {
	all, is := value.(map[string]any)
	if !is {
		return value
	}
	all = maps.Clone(all)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list, is := all[name].(map[string]any)
		if !is {
			continue
		}
		list = maps.Clone(list)
		all[name] = list
		for _, of := range slices.Sorted(maps.Keys(list)) {
			at, why := params.Join(at, name, of), ""
			switch text := strings.Trim(string(canonical.JSON(list[of])), `"`); {
			case !readableQuantity(text):
				why = ", which is no quantity that Kubernetes can read"
			case strings.HasPrefix(text, "-"):
				why = "; allowed is a quantity that is not negative"
			default:
				continue
			}
			example := map[string]string{"cpu": `"1"`, "memory": `"1Gi"`}[of]
			*problems = append(*problems, params.NewProblem(params.ParamController, at, "%s is %s%s; write, for example, %s", at,
				params.Shown(list[of]), why, cmp.Or(example, `"1"`)))
			delete(list, of)
		}
	}
	return all
}

// fractions refuses numbers with decimals or an exponent: beside quantities, the objects have integers only.
func fractions(value any, at origin) (found findings) {
	switch value := value.(type) {
	case float64:
		found.noInteger(at, value, false, "")
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			found = append(found, fractions(value[name], origin{parameter: at.parameter, path: params.Join(at.path, name)})...)
		}
	case []any:
		for i, element := range value {
			found = append(found, fractions(element, origin{parameter: at.parameter, path: extend(at.path, []string{strconv.Itoa(i)})})...)
		}
	}
	return found
}

// values returns the problems with values of the controller's chart that are objects of Kubernetes.
func (c Compiled) values() (problems []params.Problem) {
	if len(c.config.ControllerValues) == 0 {
		return nil
	}
	for _, each := range kubernetesValues {
		path := strings.Split(each.path, ".")
		value := inner(c.config.ControllerValues, path[:len(path)-1]...)[path[len(path)-1]]
		if each.path == "controller.resources" {
			value = readableResources(each.path, value, &problems)
		} else {
			problems = append(problems, fractions(value, origin{parameter: params.ParamController, path: each.path})...)
		}
		into := each.into()
		_, object := value.(map[string]any)
		_, list := value.([]any)
		if wanted := reflect.TypeOf(into).Elem().Kind() == reflect.Slice; list && !wanted || object && wanted || !list && !object {
			continue // absent, or of the wrong kind, which package plan tells
		}
		decoder := json.NewDecoder(bytes.NewReader(canonical.JSON(value)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			problems = append(problems, params.NewProblem(params.ParamController, each.path,
				"%s cannot be read by Kubernetes: %s; change it or leave it out", each.path, strings.TrimPrefix(err.Error(), "json: ")))
			continue
		}
		var pod podValues
		elements, _ := value.([]any)
		switch read := into.(type) {
		case *[]corev1.Toleration:
			pod.tolerations(*read, elements)
		case *[]corev1.TopologySpreadConstraint:
			pod.spread(*read, elements)
		case *corev1.ResourceRequirements:
			problems = append(problems, limitsBelow(*read)...)
		case *appsv1.DeploymentStrategy:
			pod.strategy(string(read.Type))
			if read.Type == appsv1.RecreateDeploymentStrategyType && read.RollingUpdate != nil {
				problems = append(problems, params.NewProblem(params.ParamController, "strategy.rollingUpdate",
					"strategy.rollingUpdate does not go together with the type Recreate; leave one of them out"))
			}
		}
		problems = append(problems, pod.findings...)
	}
	return problems
}

// Closed returns a problem if every system node group has a taint that Karpenter's controller does not tolerate, so that it has no node to
// run on. It is a warning if the controller has these tolerations and this version already: then a taint is new, and the controller runs
// until it is restarted.
func (c Compiled) Closed(facts plan.Facts, inForce *plan.Plan) (problems, warnings []params.Problem) {
	tolerations, err := controllerTolerations(c.config.ControllerValues)
	if err != nil || !c.config.Enabled {
		return nil, nil
	}
	var closed []string
	for _, group := range facts.OfRole(c.config, plan.RoleSystem) {
		i := slices.IndexFunc(group.Taints, func(t plan.NodeGroupTaint) bool {
			taint := corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(plan.KeepsAway[t.Effect])}
			return taint.Effect != "" && !slices.ContainsFunc(tolerations, func(each corev1.Toleration) bool {
				return each.ToleratesTaint(klog.Background(), &taint, false)
			})
		})
		if i < 0 {
			return nil, nil
		}
		closed = append(closed, group.Name+" ("+group.Taints[i].Key+")")
	}
	if len(closed) == 0 {
		return nil, nil
	}
	told := []params.Problem{params.NewProblem("system_node_groups", "", "every system node group has a taint that Karpenter's controller "+
		"does not tolerate: %s; a controller that is restarted stays Pending, and no node is launched any more; take the taint off one of them, "+
		"use the key %s, which the controller tolerates, write tolerations for it in karpenter_controller_config, or name a group without "+
		"taints in system_node_groups too", strings.Join(closed, ", "), ownership.TaintSystem)}
	if inForce != nil && inForce.Goal == plan.GoalKarpenter &&
		inForce.Controller.Release.Version == plan.Target(c.config, facts).Version {
		if had, err := controllerTolerations(inForce.Controller.Release.Values); err == nil && reflect.DeepEqual(had, tolerations) {
			return nil, told
		}
	}
	return told, nil
}

// controllerTolerations returns the tolerations that the controller's pods have with values of its chart: those, or the chart's own.
func controllerTolerations(values map[string]any) (all []corev1.Toleration, err error) {
	if written, is := values["tolerations"]; is {
		err = json.Unmarshal(canonical.JSON(written), &all)
		return all, err
	}
	return []corev1.Toleration{{Key: ownership.TaintSystem, Operator: corev1.TolerationOpExists}}, nil
}
