package plan_test

import (
	"fmt"
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

// The repository of Karpenter's controller must match what the deployment allows exactly. Similar names belong to
// others.
func TestImageRepositories(t *testing.T) {
	const (
		own   = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
		china = "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn"
		chart = "public.ecr.aws/karpenter/controller"
	)
	for _, c := range []struct {
		image     string
		allowed   string // imageRepositories, comma-separated
		partition string
		good      bool
	}{
		{image: chart, good: true},
		{image: chart, allowed: "example.com/*", good: true},
		{image: own + "/karpenter/controller", good: true},
		{image: "123456789012.dkr.ecr.us-gov-west-1.amazonaws.com/x", partition: "aws-us-gov", good: true},
		{image: china + "/x", partition: "aws-cn", good: true},
		{image: "example.com/karpenter/controller", allowed: own + "/x,example.com/karpenter/controller", good: true},
		{image: "example.com/karpenter/controller", allowed: "example.com/*", good: true},
		{image: "localhost:5000/karpenter/controller", allowed: "localhost:5000/karpenter/*", good: true},

		{image: chart + ".evil.com"},
		{image: chart + "-of-others"},
		{image: chart + "/x"},
		{image: "public.ecr.aws/karpenter"},
		{image: "public.ecr.aws.evil.com/karpenter/controller"},
		{image: "evil.com/public.ecr.aws/karpenter/controller"},
		{image: "Public.ecr.aws/karpenter/controller"},
		{image: chart + ":1.10.0"},
		{image: chart + "@sha256:0123456789012345678901234567890123456789012345678901234567890123"},
		{image: "karpenter/controller"}, // Docker Hub
		{image: "210987654321.dkr.ecr.eu-central-1.amazonaws.com/karpenter/controller"},
		{image: own + ".evil.com/x"},
		{image: own + ":8443/x"},
		{image: "evil.com/" + own + "/x"},
		{image: "x" + own + "/x"},
		{image: "1" + own + "/x"},
		{image: "123456789012.dkr.ecr.s3.amazonaws.com/x"}, // the host of an S3 bucket
		{image: "123456789012.dkr.ecr.s3-us-west-2.amazonaws.com/x"},
		{image: "123456789012.dkr.ecr.eu-central-1.evil.amazonaws.com/x"},
		{image: "123456789012-dkr-ecr-eu-central-1-amazonaws-com/x"},
		{image: china + "/x"}, // another partition
		{image: own + "/x", partition: "aws-cn"},
		{image: own + "/karpenter/controller", allowed: "example.com/*"},
		{image: "example.com.evil.com/karpenter/controller", allowed: "example.com/*"},
		{image: "example.com/team-of-others/x", allowed: "example.com/team/*"},
		{image: "example.com/team", allowed: "example.com/team/*"},
		{image: "example.com/team/../x", allowed: "example.com/team/*"},
		{image: "example.com/team/x", allowed: "example.com/team"},
		{image: "example.com:443/team/x", allowed: "example.com/team/*"},
	} {
		f := facts()
		if c.allowed != "" {
			f.Deployment.ImageRepositories = strings.Split(c.allowed, ",")
		}
		if c.partition != "" {
			f.Cluster.Partition = c.partition
		}
		if refuses(t, "karpenter_image_repository", with(on, "karpenter_image_repository", c.image), f) == c.good {
			t.Errorf("%+v", c)
		}
	}
}

// The problem says what was written, what is allowed, and where to change that.
func TestWhatAnImageRepositoryMayBe(t *testing.T) {
	f := facts()
	written := with(on, "karpenter_image_repository", "ghcr.io/x/y")
	for _, said := range []string{
		"ghcr.io/x/y", "allowed are public.ecr.aws/karpenter/controller and the account's own ECR;", "imageRepositories",
	} {
		if got := build(t, written, f).Problems; len(got) != 1 || !strings.Contains(got[0].Message, said) {
			t.Errorf("%v does not say %s", got, said)
		}
	}
	f.Deployment.ImageRepositories = []string{"a.example/*", "b.example/c"}
	if got := build(t, written, f).Problems; len(got) != 1 ||
		!strings.Contains(got[0].Message, "controller and a.example/*, b.example/c;") {
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

// Offline, the account and the deployment's lists are unknown: a value they may allow is a warning, a value that
// nothing allows is a problem.
func TestWithoutACloudTheDeploymentIsUnknown(t *testing.T) {
	for written, want := range map[string][2]int{ // number of problems, number of warnings
		"karpenter_image_repository=210987654321.dkr.ecr.eu-central-1.amazonaws.com/x":    {0, 0},
		"karpenter_image_repository=210987654321.dkr.ecr.cn-north-1.amazonaws.com.cn/x":   {0, 0},
		"karpenter_image_repository=210987654321.dkr.ecr.eu-central-1.amazonaws.com.de/x": {0, 1},
		"karpenter_image_repository=example.com/karpenter/controller":                     {0, 1},
		"system_deployments=ingress/nginx":                                                {0, 1},
		"system_deployments=kube-system/karpenter":                                        {1, 0},
	} {
		name, value, _ := strings.Cut(written, "=")
		got := build(t, with(on, name, value), plan.Facts{Offline: true, Deployment: plan.Deployment{RequireClusterTag: true}})
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
