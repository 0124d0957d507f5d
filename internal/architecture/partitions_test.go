package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inPartitions has the texts of the product that look specific to AWS's commercial partition, and why they are right in
// aws-cn and aws-us-gov too.
var inPartitions = map[string]string{
	"arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy": "an example for people, in the parameters' descriptions",
	"arn:aws:iam::123456789012:policy/Boundary":           "an example for people, in a refusal",
	"123456789012.dkr.ecr.eu-central-1.amazonaws.com":     "an example for people, in the parameters' descriptions",
	"ec2.amazonaws.com":         "the node role's trust has ec2.amazonaws.com.cn in China, and both stand in Karpenter's conditions",
	"ec2.amazonaws.com.cn":      "see ec2.amazonaws.com",
	"eks.amazonaws.com":         "the same in every partition, as a principal and as a prefix of labels and annotations",
	"pods.eks.amazonaws.com":    "the same principal in every partition",
	"lambda.amazonaws.com":      "the same principal in every partition",
	"events.amazonaws.com":      "the same principal in every partition",
	"spot.amazonaws.com":        "a service-linked role's principal and path, the same in every partition",
	"autoscaling.amazonaws.com": "a service-linked role's path, the same in every partition",
	"sts.amazonaws.com":         "the audience of a service account's token, the same in every partition",
	"amazonaws.com":             "the domain of AWS's labels and annotations, the same in every partition",
	"vpc.amazonaws.com":         "the name of a Kubernetes resource",
	"aws.amazon.com":            "the name of a Kubernetes resource",
}

var partitioned = regexp.MustCompile(`arn:aws[a-z-]*:[^\s"` + "`" + `]*|[a-z0-9.-]*\bamazon(?:aws)?\.com(?:\.cn)?`)

// The product can be deployed to any partition: the partition in an ARN comes from AWS or CloudFormation.
func TestNothingNamesAPartition(t *testing.T) {
	used := map[string]bool{}
	for _, file := range productFiles(t) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range partitioned.FindAllString(string(text), -1) {
			if inPartitions[found] == "" {
				t.Errorf("%s: %s is right in one partition only", file, found)
			}
			used[found] = true
		}
	}
	for row := range inPartitions {
		if !used[row] {
			t.Errorf("inPartitions has %s, which occurs nowhere", row)
		}
	}
}

// productFiles returns the files that are built into the functions, the command and the stack.
func productFiles(t *testing.T) (files []string) {
	t.Helper()
	for _, folder := range []string{"cdk", "cmd", "events", "functions", "internal", "statemachine"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			switch name := entry.Name(); {
			case entry.IsDir() && (name == "testdata" || name == "testing"):
				return fs.SkipDir
			case strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".sample.json"):
			case strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".json"):
				files = append(files, filepath.ToSlash(relative))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 100 {
		t.Fatalf("%d files: the test has lost the product", len(files))
	}
	return files
}
