package story

import (
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// Examples runs the examples that can be run, from a checkout: each sets two settings, changes them and removes them.
func Examples(root string) func(*Script) {
	examples := filepath.Join(root, "examples")
	return func(s *Script) {
		s.Chapter("The AWS CLI alone", func() {
			script := examples + "/aws/settings.sh "
			s.Type(script + "set")
			s.inForce("120,core")
			s.Type(script + "change")
			s.inForce("140,data")
			s.Type(script + "unset")
			s.inForce("100,")
			s.Type("aws ssm delete-parameters --names /sawhorse/racks/demo/change " +
				"/sawhorse/racks/demo/params/karpenter_cpu_limit /sawhorse/racks/demo/params/karpenter_node_labels")
		})

		s.Chapter("CloudFormation", func() {
			deploy := "aws cloudformation deploy --stack-name rack-demo --template-file " + examples + "/cloudformation/rack.yaml"
			s.Type(deploy)
			s.inForce("120,core")
			s.Type(deploy + " --parameter-overrides CpuLimit=140 NodeLabels=team=data")
			s.inForce("140,data")
			s.Type("aws cloudformation delete-stack --stack-name rack-demo")
			s.inForce("100,")
		})

		s.Chapter("The CDK", func() {
			cdk := "cd " + examples + ` && ` + root + `/.cache/npm/node_modules/.bin/cdk -o "$(dirname "$KUBECONFIG")/cdk.out" --app 'go run ./cdk' `
			s.Type(cdk + "deploy --require-approval never 2>&1 | grep -v ' | '")
			s.inForce("120,core")
			s.Type(cdk + "deploy --require-approval never -c karpenter_cpu_limit=140 2>&1 | grep -v ' | '")
			s.inForce("140,core")
			s.Type(cdk + "destroy --force 2>&1 | grep -v ' | '")
			s.inForce("100,")
		})

		s.Chapter("The steps of the GitHub workflow", func() {
			s.Type(`rm -rf "$(dirname "$KUBECONFIG")/racks" && cp -r ` + examples + `/github-actions/racks "$(dirname "$KUBECONFIG")"`)
			steps := workflow(s, examples+"/github-actions/.github/workflows/racks.yaml")
			here := `cd "$(dirname "$KUBECONFIG")" && rm -f refused && GITHUB_SHA=4f2d1c && `
			s.Contains("the plan of a pull request", here+steps["Plan"], "karpenter_cpu_limit")
			s.Check("nothing is written yet", limitAndLabel, "100,")
			s.Type(here + steps["Refuse"])
			s.Type(here + steps["Apply"])
			s.inForce("120,core")
			s.Contains("the note is the commit", "sawhorse status demo", "4f2d1c")
			s.Type(here + "echo node_disk=many >> racks/demo.env")
			s.Contains("the plan of a mistake", here+steps["Plan"], "node_disk")
			s.Refused(`cd "$(dirname "$KUBECONFIG")" && `+steps["Refuse"], "")
		})

		s.Change(nil, "karpenter_cpu_limit", "karpenter_node_labels")
		s.Reconciled()
	}
}

const limitAndLabel = "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu},{.spec.template.metadata.labels.team}'"

// inForce waits until the NodePool has a CPU limit and the label team.
func (s *Script) inForce(wanted string) {
	s.Until("limit and label", limitAndLabel, wanted, 2*time.Minute)
}

// workflow returns the commands of a GitHub workflow's steps by the steps' names.
func workflow(s *Script, path string) map[string]string {
	var file struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		s.fail("%s: %v", path, err)
	}
	steps := map[string]string{}
	for _, job := range file.Jobs {
		for _, step := range job.Steps {
			steps[step.Name] = step.Run
		}
	}
	return steps
}
