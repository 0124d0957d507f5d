package params

import (
	"errors"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// versionValue is a version of the catalogue. The pattern accepts every version, so that it need not be written to
// Parameter Store again for each one that is added to the catalogue.
var versionValue = Value{
	Type: "version", Pattern: `(0|[1-9][0-9]{0,4})(\.(0|[1-9][0-9]{0,4})){2}`, Allowed: either(karpenter.Versions()), Example: newest(),
	Words: karpenter.Versions(),
}

// either lists words for a sentence: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func newest() string {
	all := karpenter.Versions()
	return all[len(all)-1]
}

var errNoVersion = errors.New("which Sawhorse does not have")

func version(value string) (string, error) {
	if !slices.Contains(karpenter.Versions(), value) {
		return "", errNoVersion
	}
	return value, nil
}

// nearestVersion returns the oldest version of the catalogue that has what a version has: the next newer one, or the
// newest. Its result for a text that is not a version is "".
func nearestVersion(value string) string {
	if !versionValue.matches(value) {
		return ""
	}
	for _, each := range karpenter.Versions() {
		if karpenter.Compare(each, value) > 0 {
			return each
		}
	}
	return newest()
}

// protectedValues are the values of the controller's chart that Sawhorse sets itself, or that would give the writer of a
// parameter more than the settings of Karpenter. They are refused whatever their value is.
var protectedValues = []protectedField{
	{[]string{"settings", "clusterName"}, "the cluster is the rack's (cluster_name)"},
	{[]string{"settings", "interruptionQueue"}, "Sawhorse makes the queue"},
	{[]string{"replicas"}, "high_availability chooses the number of replicas"},
	{[]string{"controller", "image"}, "karpenter_version chooses the image, and karpenter_image_repository where it is pulled from"},
	{[]string{"controller", "containerName"}, "Sawhorse finds the container by its name"},
	{[]string{"serviceAccount"}, "Sawhorse makes the role that belongs to the service account"},
	{[]string{"nodeSelector"}, "the controller runs on the system nodes"},
	{[]string{"podAnnotations", "karpenter.sh/do-not-disrupt"}, "Sawhorse sets it"},
	{[]string{"additionalLabels", ownership.TagRack}, "by it Sawhorse knows what it made"},
	{[]string{"nameOverride"}, "Sawhorse finds the controller by its name"},
	{[]string{"fullnameOverride"}, "Sawhorse finds the controller by its name"},
	{[]string{"additionalClusterRoleRules"}, "whoever writes a parameter would give rights in the whole cluster"},
	{[]string{"initContainers"}, "any image would run with the rights of Karpenter's role"},
	{[]string{"controller", "sidecarContainer"}, "any image would run with the rights of Karpenter's role"},
}

// controller reads karpenter_controller_config. Unknown values and wrong kinds are found later, because they depend on the
// version of Karpenter.
func (r *Result) controller(objects map[string]Object) {
	value, given := r.document(ParamController, objects)
	if !given {
		return
	}
	values, is := value.(map[string]any)
	if !is {
		r.problem(ParamController, "", "%s is %s; allowed is a JSON object of values of the controller's chart; write, for example, %s",
			ParamController, kindOf(value), `{"logLevel":"debug"}`)
		return
	}
	r.protected(ParamController, protectedValues, values)
	prune(values, false) // to Helm, null would mean to drop a default
	settings, _ := values["settings"].(map[string]any)
	isolated, there := settings["isolatedVPC"].(bool)
	if _, chosen := r.written[isolatedVPC]; there && chosen && isolated != r.Config.IsolatedVPC && !r.refused(isolatedVPC) {
		r.problem(ParamController, "settings.isolatedVPC", "settings.isolatedVPC is %v, but the parameter %s is %v; leave it out, or write "+
			"both alike", isolated, isolatedVPC, r.Config.IsolatedVPC)
		delete(settings, "isolatedVPC")
	}
	r.Config.ControllerValues = values
}
