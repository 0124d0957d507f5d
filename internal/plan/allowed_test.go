package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// refuses reports whether the parameters are refused. Every problem must be with the given parameter.
func refuses(t *testing.T, parameter string, written texts, f plan.Facts) bool {
	t.Helper()
	parsed := params.Parse(params.Input{Rack: "demo", Params: written, Previous: f.Records.Params})
	problems := append(parsed.Problems, plan.Build(parsed.Config, f, nil).Problems...)
	for _, p := range problems {
		if p.Parameter != parameter {
			t.Errorf("%v: %v", written, p)
		}
	}
	return len(problems) > 0
}

// undigested is a version of Karpenter whose image has no digest in the catalogue, digested is one with a digest.
const undigested, digested = "1.14.3", "1.12.1"

// The repository of a controller whose digest is not known must match what the deployment allows exactly. Similar names
// belong to others, and the account's own ECR may hold anybody's images, by a pull-through cache. With a digest, any
// repository has the same image or none.
func TestImageRepositories(t *testing.T) {
	const (
		own   = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
		chart = "public.ecr.aws/karpenter/controller"
	)
	for _, c := range []struct {
		image   string
		allowed string // imageRepositories, comma-separated
		good    bool
	}{
		{image: chart, good: true},
		{image: chart, allowed: "example.com/*", good: true},
		{image: own + "/karpenter/controller", allowed: own + "/karpenter/*", good: true},
		{image: "example.com/karpenter/controller", allowed: own + "/x,example.com/karpenter/controller", good: true},
		{image: "example.com/karpenter/controller", allowed: "example.com/*", good: true},
		{image: "localhost:5000/karpenter/controller", allowed: "localhost:5000/karpenter/*", good: true},

		{image: own + "/karpenter/controller"},
		{image: own + "/docker-hub/somebody/controller"}, // a pull-through cache
		{image: chart + ".evil.com"},
		{image: chart + "-of-others"},
		{image: chart + "/x"},
		{image: "public.ecr.aws/karpenter"},
		{image: "public.ecr.aws.evil.com/karpenter/controller"},
		{image: "evil.com/public.ecr.aws/karpenter/controller"},
		{image: "karpenter/controller"}, // Docker Hub
		{image: own + "/karpenter/controller", allowed: "example.com/*"},
		{image: "example.com.evil.com/karpenter/controller", allowed: "example.com/*"},
		{image: "example.com/team-of-others/x", allowed: "example.com/team/*"},
		{image: "example.com/team", allowed: "example.com/team/*"},
		{image: "example.com/team/x", allowed: "example.com/team"},
		{image: "example.com:443/team/x", allowed: "example.com/team/*"},
	} {
		f := facts()
		if c.allowed != "" {
			f.Deployment.ImageRepositories = strings.Split(c.allowed, ",")
		}
		written := with(on, "karpenter_image_repository", c.image, "karpenter_version", undigested)
		if refuses(t, "karpenter_image_repository", written, f) == c.good {
			t.Errorf("%+v", c)
		}
		written["karpenter_version"] = digested
		if refuses(t, "karpenter_image_repository", written, f) {
			t.Errorf("%+v is refused with a digest", c)
		}
	}
	// What is no name of a repository could bring its own digest.
	for _, image := range []string{
		"Public.ecr.aws/karpenter/controller", chart + ":1.10.0", "example.com/team/../x",
		chart + "@sha256:0123456789012345678901234567890123456789012345678901234567890123",
	} {
		f := facts()
		f.Deployment.ImageRepositories = []string{"example.com/team/*"}
		if !refuses(t, "karpenter_image_repository", with(on, "karpenter_image_repository", image), f) {
			t.Errorf("%s is accepted", image)
		}
	}
}

// A repository that a digest made harmless, or a version without one, may be in force when the other is written. The
// version that comes back if a change fails is judged too, because a failure can be brought about.
func TestAnotherRepositoryOrVersion(t *testing.T) {
	const image, version, elsewhere = "karpenter_image_repository", "karpenter_version", "ghcr.io/somebody/controller"
	for _, c := range []struct {
		name, refused string
		before        texts
		inForce       string
		after         texts
		warned        bool
	}{
		{name: "the version, under a repository in force", before: texts{image: elsewhere}, inForce: digested,
			after: texts{image: elsewhere, version: undigested}, refused: version},
		{name: "the repository, under a version in force", before: texts{version: undigested}, inForce: undigested,
			after: texts{version: undigested, image: elsewhere}, refused: image},
		{name: "the repository, under a version in force that is not written", before: texts{}, inForce: undigested,
			after: texts{image: elsewhere}, refused: image},
		{name: "both", before: texts{}, inForce: digested, after: texts{version: undigested, image: elsewhere}, refused: image},
		{name: "a digest, away from a version that would come back", before: texts{version: undigested}, inForce: undigested,
			after: texts{version: digested, image: elsewhere}, refused: image},
		{name: "from one without a digest to another", before: texts{image: elsewhere, version: undigested}, inForce: undigested,
			after: texts{image: elsewhere, version: "1.15.1"}, refused: version},
		{name: "what is in force", before: texts{image: elsewhere, version: undigested}, inForce: undigested,
			after: texts{image: elsewhere, version: undigested, "karpenter_cpu_limit": "7"}, warned: true},
		{name: "away from what is in force", before: texts{image: elsewhere, version: undigested}, inForce: undigested,
			after: texts{image: elsewhere, version: digested}, warned: true},
		{name: "with digests before and after", before: texts{}, inForce: "1.10.0", after: texts{version: digested, image: elsewhere}},
	} {
		f := facts()
		f.Records = plan.Records{Goal: plan.GoalKarpenter, WasOn: true, Params: c.before, Karpenter: plan.KarpenterRecord{Version: c.inForce}}
		got := build(t, with(on, flat(c.after)...), f)
		if (c.refused != "") != (len(got.Problems) == 1) || c.refused != "" && got.Problems[0].Parameter != c.refused {
			t.Errorf("%s: problems %v", c.name, got.Problems)
		}
		warned := slices.ContainsFunc(got.Warnings, func(w params.Problem) bool { return w.Parameter == image })
		if warned != c.warned {
			t.Errorf("%s: warnings %v", c.name, got.Warnings)
		}
	}
}

func flat(written texts) (list []string) {
	for name, value := range written {
		list = append(list, name, value)
	}
	return list
}

// The problem says what was written, what is allowed, and where to change that.
func TestWhatAnImageRepositoryMayBe(t *testing.T) {
	f := facts()
	written := with(on, "karpenter_image_repository", "ghcr.io/x/y", "karpenter_version", undigested)
	for _, said := range []string{
		"ghcr.io/x/y", "Karpenter " + undigested, "are public.ecr.aws/karpenter/controller;", "imageRepositories", "write a karpenter_version",
	} {
		if got := build(t, written, f).Problems; len(got) != 1 || !strings.Contains(got[0].Message, said) {
			t.Errorf("%v does not say %s", got, said)
		}
	}
	f.Deployment.ImageRepositories = []string{"a.example/*", "b.example/c"}
	if got := build(t, written, f).Problems; len(got) != 1 ||
		!strings.Contains(got[0].Message, "controller, a.example/*, b.example/c;") {
		t.Errorf("%v", got)
	}
	f.Records = plan.Records{Goal: plan.GoalKarpenter, WasOn: true, Karpenter: plan.KarpenterRecord{Version: undigested}}
	written["karpenter_version"] = digested
	if got := build(t, written, f).Problems; len(got) != 1 ||
		!strings.HasSuffix(got[0].Message, "write it once 1.12.1 runs, because 1.14.3 comes back if that fails") {
		t.Errorf("%v", got)
	}
}

// A proxy is one of the deployment's, to the letter, and so is each host that is reached without one.
func TestProxies(t *testing.T) {
	const listed = "http://proxy.example.com:3128,169.254.170.23,10.0.0.0/8,.svc"
	for _, c := range []struct {
		variable, value, allowed string
		good                     bool
	}{
		{variable: "HTTPS_PROXY", value: "http://proxy.example.com:3128", allowed: listed, good: true},
		{variable: "NO_PROXY", value: "169.254.170.23,10.0.0.0/8,.svc", allowed: listed, good: true},
		{variable: "NO_PROXY", value: ".svc", allowed: listed, good: true},

		{variable: "HTTPS_PROXY", value: "http://proxy.example.com:3128"},
		{variable: "NO_PROXY", value: "10.0.0.0/8"},
		{variable: "HTTPS_PROXY", value: "http://proxy.example.com", allowed: listed},
		{variable: "HTTPS_PROXY", value: "https://proxy.example.com:3128", allowed: listed},
		{variable: "HTTPS_PROXY", value: "http://evil.com/http://proxy.example.com:3128", allowed: listed},
		{variable: "HTTPS_PROXY", value: "http://proxy.example.com:3128@evil.com", allowed: listed},
		{variable: "HTTPS_PROXY", value: "169.254.170.23", allowed: listed}, // no proxy, though it is in the list
		{variable: "HTTPS_PROXY", value: "http://proxy.example.com:3128,.svc", allowed: listed},
		{variable: "NO_PROXY", value: "*", allowed: listed},
		{variable: "NO_PROXY", value: ".svc,*", allowed: listed},
		{variable: "NO_PROXY", value: ".svc,,", allowed: listed},
		{variable: "http_proxy", value: "http://proxy.example.com:3128", allowed: listed},
		{variable: "HTTP_PROXY", value: "http://proxy.example.com:3128", allowed: listed},
		{variable: "ALL_PROXY", value: "http://proxy.example.com:3128", allowed: listed},
	} {
		f := facts()
		f.Deployment.Proxies = strings.FieldsFunc(c.allowed, func(r rune) bool { return r == ',' })
		written := with(on, "karpenter_controller_config", fmt.Sprintf(`{"controller":{"env":[{"name":%q,"value":%q}]}}`, c.variable, c.value))
		if refuses(t, "karpenter_controller_config", written, f) == c.good {
			t.Errorf("%+v", c)
		}
	}
}

// Only Deployments of the system or of the rack itself may be placed on system nodes, and never Karpenter's controller.
func TestSystemDeployments(t *testing.T) {
	for deployments, good := range map[string]bool{
		"kube-system/metrics-server,kube-system/coredns": true,
		"demo-system/api,demo-system/web":                true,
		"demo-2-system/api":                              false, // rack demo-2
		"demo-web/web":                                   false, // of a rack demo-web, or of nobody
		"ingress/nginx":                                  true,
		"ingress-of-others/nginx":                        false,
		"kube-system-of-others/x":                        false,
		"kube-public/x":                                  false,
		"demo/web":                                       false,
		"demos-system/api":                               false,
		"other-demo-system/api":                          false,
		"shop/web,kube-system/coredns":                   false,
		"kube-system/karpenter":                          false,
		"kube-system/karpenter-webhook":                  true,
	} {
		for _, more := range []string{"karpenter_enabled", "karpenter_auth_mode"} { // with Karpenter, and before any plan
			f, written := facts(), with(on, "system_deployments", deployments)
			f.Deployment.SystemNamespaces = []string{"ingress"}
			if more == "karpenter_auth_mode" {
				written, f.Cluster = texts{"system_deployments": deployments}, nil
			}
			if refuses(t, "system_deployments", written, f) == good {
				t.Errorf("%s (%s): want good %v", deployments, more, good)
			}
		}
	}
	f := facts()
	f.Deployment.SystemNamespaces = []string{"ingress", "dns"}
	got := build(t, with(on, "system_deployments", "shop/web,dns/a,shop/db"), f).Problems
	if len(got) != 1 ||
		!strings.Contains(got[0].Message,
			"has shop/db, shop/web; allowed are Deployments of the namespaces kube-system, demo-system, ingress, dns;") ||
		!strings.Contains(got[0].Message, "systemNamespaces") {
		t.Errorf("%v", got)
	}
}

// Offline, the deployment's lists are unknown: a value they may allow is a warning, a value that
// nothing allows is a problem.
func TestWithoutACloudTheDeploymentIsUnknown(t *testing.T) {
	for written, want := range map[string][2]int{ // number of problems, number of warnings
		"karpenter_image_repository=example.com/karpenter/controller": {0, 1},
		"system_deployments=ingress/nginx":                            {0, 1},
		"system_deployments=kube-system/karpenter":                    {1, 0},
	} {
		name, value, _ := strings.Cut(written, "=")
		f := plan.Facts{Offline: true, Deployment: plan.Deployment{RequireClusterTag: true, Unknown: true}}
		got := build(t, with(on, name, value, "karpenter_version", undigested), f)
		if len(got.Problems) != want[0] || len(got.Warnings) != want[1] {
			t.Errorf("%s: problems %v, warnings %v", written, got.Problems, got.Warnings)
		}
	}
}

// Offline, the cluster's tags may be unknown.
func TestWithoutACloudTheTagMayBeUnknown(t *testing.T) {
	for _, c := range []struct {
		tags     texts
		problems int
	}{{nil, 0}, {texts{}, 1}, {texts{"sawhorse.dev/rack": "demo"}, 0}, {texts{"sawhorse.dev/rack": "other"}, 1}} {
		f := plan.Facts{
			Offline: true, Cluster: &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo"}, Status: "ACTIVE", Tags: c.tags},
			Deployment: plan.Deployment{RequireClusterTag: true},
		}
		if got := build(t, on, f).Problems; len(got) != c.problems {
			t.Errorf("%v: %v", c.tags, got)
		}
	}
}
