package main

import (
	"strings"
	"testing"
)

func TestSettingsRefuse(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"architecture", "riscv", "arm64 or x86_64"},
		{"prefix", "sawhorse", "like /sawhorse"},
		{"prefix", "/sawhorse/", "like /sawhorse"},
		{"prefix", "/aws/sawhorse", "keeps for itself"},
		{"stackName", "a_b", "like Sawhorse"},
		{"busName", "a b", "like sawhorse"},
		{"debounceSeconds", "61", "from 0 to 60"},
		{"debounceSeconds", "5s", "from 0 to 60"},
		{"podIdentityDelaySeconds", "61", "from 0 to 60"},
		{"resyncSlots", "7", "a divisor of resyncMinutes, 60"},
		{"subnetIds", "subnet-1", "together with securityGroupIds"},
		{"table", "arn:aws:dynamodb", "the name of a table"},
		{"vpcEndpoints", "ssm", "the name of an endpoint service"},
		{"vpcEndpoints", "com.amazonaws.eu-central-1.lambda", "of one that the functions call: autoscaling, dynamodb, ec2"},
		{"vpcEndpoints", "com.amazonaws.eu-central-1.ssm", "together with vpcId, subnetIds"},
		{"vpcEndpoints", "com.amazonaws.eu-central-1.s3", "together with routeTableIds"},
		{"operatorRacks", "prod,Team", "a rack's name"},
		{"operatorRacks", "*/params", "a rack's name"},
		{"reservedConcurrency", "-1", "from 0 to 1000"},
		{"validateConcurrency", "-1", "from 0 to 1000"},
		{"dryRunConcurrency", "1001", "from 0 to 1000"},
		{"busName", "default", "not the account's default bus"},
		{"logRetentionDays", "31", "30 60 90"},
		{"logRetentionDays", "a month", "30 60 90"},
		{"logRemoval", "delete", "destroy or retain"},
		{"objectAccounts", "1234", "twelve digits"},
		{"nodeActions", "*", "the boundary would hold nothing back"},
		{"nodeActions", "s3", "service:Action or service:Prefix*"},
		{"nodeActions", "s3:Get*Object", "service:Action or service:Prefix*"},
		{"nodeActions", "s3:GetObject, s3:PutObject", "service:Action or service:Prefix*"},
		{"nodeActions", "S3:GetObject", "service:Action or service:Prefix*"},
		{"nodeActions", "s3:GetObject,iam:*", "not the whole service"},
		{"nodeActions", []any{"sts:*"}, "not the whole service"},
		{"nodeActions", "organizations:*", "not the whole service"},
		{"requireClusterTag", "no", "true or false"},
		{"rolePath", "team/", "a slash at both ends"},
		{"rolePath", "/team", "a slash at both ends"},
		{"rolePath", "/te*m/", "a slash at both ends"},
		{"boundaryArn", "Boundary", "the ARN of a managed policy"},
		{"boundaryArn", "arn:aws:iam::123456789012:policy/*", "the ARN of a managed policy"},
		{"nodePolicyArns", "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy", "given together with boundaryArn"},
		{"fips", "yes", "false or true"},
		{"dualStack", "1", "false or true"},
		{"nodeRoles", "*", "not for all of it"},
		{"nodeRoles", "arn:aws:iam::123456789012:role/nodes", "a role's name behind its path"},
		{"imageRepositories", "example.com", "or the beginning of some and /*"},
		{"imageRepositories", "example.com/*,*", "or the beginning of some and /*"},
		{"imageRepositories", "example.com/team*", "or the beginning of some and /*"},
		{"imageRepositories", "example.com/*/x", "or the beginning of some and /*"},
		{"imageRepositories", "example.com/x:1", "without a tag"},
		{"imageRepositories", "Example.com/x", "without a tag"},
		{"imageOwners", "amazon", "or aws-marketplace"}, // is allowed anyway
		{"imageOwners", "self", "or aws-marketplace"},   // every image of the account
		{"imageOwners", "1234", "twelve digits"},
		{"imageOwners", "*", "twelve digits"},
		{"systemNamespaces", "ingress*", "the name of a namespace"},
		{"systemNamespaces", "ingress/nginx", "the name of a namespace"},
		{"proxies", "http://user:password@proxy.example.com:3128", "without a password"},
		{"proxies", "http://proxy.example.com:3128/$(TOKEN)", "without a password"},
		{"proxies", "socks5://proxy.example.com", "a proxy, like http://"},
		{"proxies", []any{"10.0.0.0/8,.svc"}, "a host or network"},
		{"objectPrefixes", "s3://config", "like s3://example-config/racks/{rack}/"},
		{"objectPrefixes", "s3://Config/racks/{rack}/", "like s3://example-config/racks/{rack}/"},
		{"objectPrefixes", "s3://config/racks/", "every rack may read is for sharedObjectPrefixes"},
		{"objectPrefixes", "s3://config/racks/{rack}", "{rack} as a part of its path"},
		{"objectPrefixes", "s3://config/racks/{rack}-", "{rack} as a part of its path"},
		{"objectPrefixes", "s3://config/racks/x-{rack}/", "{rack} as a part of its path"},
		{"objectPrefixes", "s3://config-{rack}/", "{rack} as a part of its path"},
		{"objectPrefixes", "s3://config/{rack}/{rack}/", "{rack} as a part of its path"},
		{"objectPrefixes", "s3://config/{rack}/*", "without wildcards"},
		{"objectPrefixes", "s3://config/{rack}/,s3://config/", "sharedObjectPrefixes"},
		{"sharedObjectPrefixes", "s3://config", "like s3://example-config/all/"},
		{"sharedObjectPrefixes", "s3://config/*", "without wildcards"},
		{"sharedObjectPrefixes", "s3://config/${aws:username}", "without wildcards"},
		{"sharedObjectPrefixes", "https://config/racks", "like s3://example-config/all/"},
		{"sharedObjectPrefixes", "s3://config/a,", "like s3://example-config/all/"},
		{"sharedObjectPrefixes", "s3://config/{rack}/", "is for objectPrefixes"},
		{"removal", "delete", "retain or destroy"},
		{"synthesizer", "legacy", "default or cli"},
	} {
		_, err := readSettings(func(key string) any {
			if key == c.key {
				return c.value
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "context "+c.key) {
			t.Errorf("%s=%v: %v, want %q", c.key, c.value, err, c.want)
		}
	}
}

func TestSettingsTakeLists(t *testing.T) {
	got, err := readSettings(func(key string) any {
		return map[string]any{"nodeActions": "s3:Get*,kms:Decrypt,sqs:*,iam:GetRole",
			"objectPrefixes": []any{"s3://config/racks/{rack}/", "s3://config/{rack}/pools/x-"}, "sharedObjectPrefixes": "s3://other.config/",
			"imageRepositories": "localhost:5000/karpenter/controller,example.com/*,example.com/team/*", "systemNamespaces": "ingress,a",
			"imageOwners": "099720109477,aws-marketplace",
			"proxies":     "http://proxy.example.com:3128,169.254.170.23,.example.com,*.example.com,10.0.0.0/8,fd00:ec2::23,localhost"}[key]
	})
	if err != nil || len(got.NodeActions) != 4 || got.NodeActions[1] != "kms:Decrypt" || len(got.ObjectPrefixes) != 3 ||
		got.ObjectPrefixes[2] != "s3://other.config/" ||
		len(got.ImageRepositories) != 3 || len(got.ImageOwners) != 2 || len(got.SystemNamespaces) != 2 ||
		len(got.Proxies) != 7 || !got.RequireClusterTag {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSettingsReportEverything(t *testing.T) {
	_, err := readSettings(func(key string) any { return map[string]any{"architecture": "x", "removal": "y"}[key] })
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want two lines: %v", err)
	}
}

func TestMissingZipIsOneSentence(t *testing.T) {
	s := settings{Dist: t.TempDir(), Architecture: "arm64"}
	if err := s.checkZips(); err == nil || !strings.Contains(err.Error(), "run `make build` first") {
		t.Errorf("%v", err)
	}
}
