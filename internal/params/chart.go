package params

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ChartValue says whether a writer of karpenter_controller_config may set a value of the controller's chart. Charts have
// values that run code beside the controller, or that hand out its credentials, so a value that is not in ChartValues is
// refused, and with it what a new version's chart brings.
type ChartValue struct {
	// Path is the value's path in the chart, for example settings.featureGates.nodeRepair. It may lead to an object: what
	// is in it is then part of the value.
	Path string
	// Refused says why the value may not be set. It is empty if it may.
	Refused string
	// Within says in the documentation what is allowed of a value that may be set.
	Within string
	// Words are all values that it takes, if it is a text of few.
	Words []string
	// Like is a value of the right kind, if the chart's own value is null.
	Like any
	// check returns what is wrong with a value that may be set, beyond its kind.
	check func(at string, value any) []flaw
}

// Reasons and rules that several values have.
const (
	byItsName     = "Sawhorse finds the controller by its name"
	runsOthers    = "what it runs would have the credentials of Karpenter's role"
	othersFiles   = "files of others would lie over those of the controller, its program and its credentials among them"
	writesFiles   = "the controller would write its log into files and to other programs; what a pod writes to stdout is collected"
	itsConfine    = "the chart confines the process, and another user, group or profile could let it out"
	thisCluster   = "the cluster is the rack's (cluster_name), and EKS tells Karpenter how to reach it"
	keysOfOthers  = "no keys of Kubernetes, Karpenter, AWS, Sawhorse, Helm, and of programs that change pods"
	aDuration     = "a number with a unit, like 10s"
	aRefresh      = "a number with a unit, a minute or more, like 5m"
	trueOrFalse   = "true or false"
	keysOfService = "; none by which Services choose pods (app, k8s-app and others)"
)

// ChartValues are the values of the charts of all versions, sorted by path. A test has every value of every chart.
var ChartValues = []ChartValue{
	{Path: "additionalAnnotations", Within: keysOfOthers, check: annotations},
	{Path: "additionalClusterRoleRules", Refused: "whoever writes a parameter would give rights in the whole cluster"},
	{Path: "additionalLabels", Refused: "the chart labels its ClusterRoles with them too, and by labels rights are added to other roles; " +
		"podLabels are the pods' own"},
	{Path: "affinity", Within: "a podAntiAffinity is between the controller's own pods", check: affinity},
	{Path: "controller.containerName", Refused: "Sawhorse finds the container by its name"},
	{Path: "controller.env", Within: "GOGC, GOMAXPROCS and GOMEMLIMIT; HTTPS_PROXY and NO_PROXY with values of the stack's proxies",
		check: environment},
	{Path: "controller.envFrom", Refused: "variables would come from any ConfigMap and Secret of kube-system"},
	{Path: "controller.extraVolumeMounts", Refused: othersFiles},
	{Path: "controller.healthProbe.port", Within: "1 to 65535", check: port},
	{Path: "controller.image", Refused: "karpenter_version chooses the image, and karpenter_image_repository where it is pulled from"},
	{Path: "controller.metrics.port", Within: "1 to 65535", check: port},
	{Path: "controller.resources", Within: "requests and limits", check: resources},
	{Path: "controller.securityContext", Refused: itsConfine},
	{Path: "controller.sidecarContainer", Refused: runsOthers},
	{Path: "controller.sidecarVolumeMounts", Refused: runsOthers},
	{Path: "dnsConfig", Refused: "whoever answers the controller's questions for names could take the place of AWS"},
	{Path: "dnsPolicy", Words: []string{"ClusterFirst", "ClusterFirstWithHostNet", "Default"}},
	{Path: "extraVolumes", Refused: othersFiles},
	{Path: "fullnameOverride", Refused: byItsName},
	{Path: "hostNetwork", Within: trueOrFalse},
	{Path: "imagePullPolicy", Refused: "a version's image never changes, so a node need not pull it again"},
	{Path: "imagePullSecrets", Within: "names of Secrets"},
	{Path: "initContainers", Refused: runsOthers},
	{Path: "logErrorOutputPaths", Refused: writesFiles},
	{Path: "logLevel", Words: []string{"debug", "info", "error"}},
	{Path: "logOutputPaths", Refused: writesFiles},
	{Path: "nameOverride", Refused: byItsName},
	{Path: "nodeSelector", Refused: "the controller runs on the system nodes"},
	{Path: "podAnnotations", Within: keysOfOthers, check: annotations},
	{Path: "podDisruptionBudget.maxUnavailable", Within: "a whole number", check: bits32(1)},
	{Path: "podDisruptionBudget.name", Refused: "another name could be that of another PodDisruptionBudget in kube-system"},
	{Path: "podLabels", Within: keysOfOthers + keysOfService, check: podLabels},
	{Path: "podSecurityContext", Refused: itsConfine},
	{Path: "priorityClassName", Within: "the name of a PriorityClass", check: nameOfObject},
	{Path: "replicas", Refused: "high_availability chooses the number of replicas"},
	{Path: "revisionHistoryLimit", Within: "a whole number", check: bits32(10)},
	{Path: "schedulerName", Refused: "another scheduler need not keep the controller on the system nodes"},
	{Path: "service", Refused: "by its annotations programs in the cluster open a Service to others"},
	{Path: "serviceAccount", Refused: "Sawhorse makes the role that belongs to the service account"},
	{Path: "serviceMonitor.additionalLabels", Within: keysOfOthers, check: monitorLabels},
	{Path: "serviceMonitor.enabled", Within: trueOrFalse},
	{Path: "serviceMonitor.endpointConfig", Within: strings.Join(endpointFields, ", "), check: endpoint},
	{Path: "serviceMonitor.metricRelabelings", Within: strings.Join(relabelFields, ", "), check: metricRelabelings},
	{Path: "serviceMonitor.relabelings", Within: "labels of the target, not where it is (those with __)", check: relabelings},
	{Path: "serviceMonitor.sampleLimit", Within: "a whole number", Like: 1.0},
	{Path: "settings.amiRefreshInterval", Within: aRefresh, check: refresh},
	{Path: "settings.awsFeatureGates.draEFA", Within: trueOrFalse, Like: false},
	{Path: "settings.awsFeatureGates.draNVIDIAGPU", Within: trueOrFalse, Like: false},
	{Path: "settings.awsFeatureGates.nodeClassCEL", Within: trueOrFalse},
	{Path: "settings.awsFeatureGates.rebootForRepair", Within: trueOrFalse},
	{Path: "settings.batchIdleDuration", Within: aDuration, check: timeSpan},
	{Path: "settings.batchMaxDuration", Within: aDuration, check: timeSpan},
	{Path: "settings.clusterCABundle", Refused: thisCluster},
	{Path: "settings.clusterEndpoint", Refused: thisCluster},
	{Path: "settings.clusterName", Refused: thisCluster},
	{Path: "settings.disableClusterStateObservability", Within: trueOrFalse},
	{Path: "settings.disableDryRun", Within: trueOrFalse},
	{Path: "settings.eksControlPlane", Within: trueOrFalse},
	{Path: "settings.enableDRA", Within: trueOrFalse},
	{Path: "settings.enableZonalShift", Within: trueOrFalse},
	{Path: "settings.featureGates.capacityBuffer", Within: trueOrFalse},
	{Path: "settings.featureGates.nodeOverlay", Within: trueOrFalse},
	{Path: "settings.featureGates.nodeRepair", Within: trueOrFalse},
	{Path: "settings.featureGates.podDeletionCostManagement", Within: trueOrFalse},
	{Path: "settings.featureGates.reservedCapacity", Within: trueOrFalse},
	{Path: "settings.featureGates.spotToSpotConsolidation", Within: trueOrFalse},
	{Path: "settings.featureGates.staticCapacity", Within: trueOrFalse},
	{Path: "settings.featureGates.terminateFirstDrift", Within: trueOrFalse},
	{Path: "settings.featureGates.terminateFirstRepair", Within: trueOrFalse},
	{Path: "settings.ignoreDRARequests", Within: trueOrFalse, Like: false},
	{Path: "settings.interruptionQueue", Refused: "Sawhorse makes the queue"},
	{Path: "settings.isolatedVPC", Within: trueOrFalse},
	{Path: "settings.legacyNodeRepair", Within: trueOrFalse},
	{Path: "settings.minValuesPolicy", Words: []string{"Strict", "BestEffort"}},
	{Path: "settings.preferencePolicy", Words: []string{"Respect", "Ignore"}},
	{Path: "settings.reservedENIs", Within: "a whole number, in quotes", check: digits},
	{Path: "settings.securityGroupRefreshInterval", Within: aRefresh, check: refresh},
	{Path: "settings.subnetRefreshInterval", Within: aRefresh, check: refresh},
	{Path: "settings.vmMemoryOverheadPercent", Within: "a number below 1, like 0.075 for 7.5%", check: fraction},
	{Path: "strategy", Within: "a DeploymentStrategy"},
	{Path: "terminationGracePeriodSeconds", Within: "a whole number", Like: 30.0},
	{Path: "tolerations", Within: "Tolerations"},
	{Path: "topologySpreadConstraints", Within: "TopologySpreadConstraints"},
}

// flaws returns what is wrong with a value that may be set, beyond its kind.
func (v ChartValue) flaws(value any) []flaw {
	text, is := value.(string)
	// The chart puts texts between quotes, and executes templates in them.
	if is && (strings.ContainsAny(text, `"\`) || strings.Contains(text, "{{") || strings.ContainsFunc(text, unprintable)) {
		return []flaw{{v.Path, fmt.Sprintf("is %s, and the chart takes no quotes, backslashes, line breaks and {{ there; leave them out",
			Shown(text))}}
	}
	if is && len(v.Words) > 0 && !slices.Contains(v.Words, text) {
		allowed := strings.Join(v.Words, ", ")
		return []flaw{{v.Path, fmt.Sprintf("is %s; allowed are %s; %s", Shown(text), allowed, DidYouMean(text, v.Words, "write one of these"))}}
	}
	if v.check == nil {
		return nil
	}
	return v.check(v.Path, value)
}

// Takes reports whether nothing is wrong with a value, if it has the right kind.
func (v ChartValue) Takes(value any) bool { return len(v.flaws(value)) == 0 }

// FindChartValue returns the chart value at a path. judged is false for an object that only leads to values, and for a
// value of which nobody has said whether it may be set.
func FindChartValue(path []string) (value ChartValue, judged bool) {
	value, judged = byPath()[joined(path)]
	return value, judged && value.Path != ""
}

// MaySet reports whether a path is that of a value that may be set, or leads to one.
func MaySet(path []string) bool {
	value, there := byPath()[joined(path)]
	return there && value.Refused == ""
}

// byPath has ChartValues by their paths. The objects that lead to values that may be set have no path of their own.
var byPath = sync.OnceValue(func() map[string]ChartValue {
	all := map[string]ChartValue{}
	for _, value := range ChartValues {
		all[value.Path] = value
		for i, r := range value.Path {
			if r == '.' && value.Refused == "" {
				all[value.Path[:i]] = ChartValue{}
			}
		}
	}
	return all
})

// joined returns a path as ChartValues have it, and none of theirs if a name in it has a dot: none of the chart's has.
func joined(path []string) string {
	if slices.ContainsFunc(path, func(name string) bool { return strings.Contains(name, ".") }) {
		return "."
	}
	return strings.Join(path, ".")
}
