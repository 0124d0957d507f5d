package validate

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

// A JSON parameter may name an object in S3 below a prefix that the stack allows.
func TestObjects(t *testing.T) {
	const name = "additional_karpenter_nodepools_config"
	big := "[" + strings.Repeat(" ", maxObject) + "]"
	for _, c := range []struct{ what, uri, text, want string }{
		{"JSON", "s3://config/racks/pools.json", `[{"name":"gpu"}]`, ""},
		{"base64 of it", "s3://config/racks/pools.b64", "W3sibmFtZSI6\nImdwdSJ9XQ==\n", ""},
		{"white space around the value", " s3://config/racks/pools.json\n", `[]`, ""},
		{"not there", "s3://config/racks/none.json", "", "which does not exist; upload it first"},
		{"outside the prefix", "s3://config/other.json", `[]`,
			"not below a prefix that the stack allows (s3://config/racks/, s3://own/racks/demo/)"},
		{"another bucket", "s3://other/racks/pools.json", `[]`, "not below a prefix"},
		{"too large", "s3://config/racks/big.json", big, "more than 131072 bytes"},
		{"too large for JSON", "s3://config/racks/big.json", big[:params.MaxJSON] + " ]", "more than 65536"},
		{"bad JSON", "s3://config/racks/bad.json", `[{]`, "is no JSON"},
		{"an object that leads on", "s3://config/racks/on.json", "s3://config/racks/pools.json", "leads to another s3:// value"},
		{"a mistake inside", "s3://config/racks/pools.json", `[{"name":"GPU"}]`, `[0].name is "GPU"`},
		{"a key that is too long", "s3://config/racks/" + strings.Repeat("k", 1024-len("racks/")+1), `[]`, "has a key of 1025 bytes"},
		{"the longest key", "s3://config/racks/" + strings.Repeat("k", 1024-len("racks/")), `[]`, ""},
	} {
		s := begin(t, auth, on, name+"="+c.uri)
		if !strings.Contains(c.want, "does not exist") {
			s.cloud.S3.Objects[strings.TrimPrefix(strings.TrimSpace(c.uri), "s3://")] = c.text
		}
		found, err := s.find()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.want == "" && len(found.Problems) > 0:
			t.Errorf("%s: %v", c.what, found.Problems)
		case c.want != "" && (len(found.Problems) != 1 ||
			found.Problems[0].Parameter != name || !strings.Contains(found.Problems[0].Message, c.want)):
			t.Errorf("%s: %v, want %q", c.what, found.Problems, c.want)
		}
	}
}

// archived is S3's answer for an object that has to be restored first.
var archived = &smithy.GenericAPIError{Code: "InvalidObjectState", Fault: smithy.FaultClient}

// answered is an error of S3 as it arrives: of most, the SDK knows only the status.
func answered(status int, code string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: &smithy.GenericAPIError{Code: code},
	}
}

// What S3 refuses as long as nobody does anything about it is a problem of the parameter. What passes by itself, or is no fault of the
// object, fails the pass, which is tried again.
func TestAnObjectThatS3Refuses(t *testing.T) {
	for _, c := range []struct {
		err  error
		code string
	}{
		{archived, "InvalidObjectState"},
		{&s3types.InvalidObjectState{}, "InvalidObjectState"},
		{answered(400, "KMS.DisabledException"), "KMS.DisabledException"},
		{answered(400, "InvalidRequest"), "InvalidRequest"}, // it is encrypted with a key of its own (SSE-C)
		{answered(301, "PermanentRedirect"), "PermanentRedirect"},
		{answered(400, "AuthorizationHeaderMalformed"), "AuthorizationHeaderMalformed"}, // of another region too
		{answered(403, "AllAccessDisabled"), "AllAccessDisabled"},
		{answered(400, "ExpiredToken"), ""},
		{answered(403, "RequestTimeTooSkewed"), ""},
		{answered(400, "RequestTimeout"), ""},
		{answered(400, "ThrottlingException"), ""},
		{answered(400, "KMS.ThrottlingException"), ""},
		{answered(429, "TooManyRequests"), ""},
		{answered(307, "TemporaryRedirect"), ""},
		{answered(503, "SlowDown"), ""},
		{answered(500, "InternalError"), ""},
		{&smithyhttp.RequestSendError{}, ""},
	} {
		s := begin(t, auth, on, "karpenter_config=s3://config/racks/c.json")
		s.cloud.Fail("S3.GetObject", c.err)
		found, err := s.find()
		want := "which S3 does not give out (" + c.code + "); "
		if (err == nil) != (c.code != "") || err == nil && (len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Message, want)) {
			t.Errorf("%v: %v, %v", c.err, err, found.Problems)
		}
	}
}

// Neither a parameter nor a change that S3 refuses holds up a brake or a turning off.
func TestWhatS3RefusesHoldsUpNothing(t *testing.T) {
	s := reconciled(t)
	s.write("karpenter_config=s3://config/racks/c.json")
	s.cloud.Fail("S3.GetObject", archived)
	s.change("s3://config/racks/change.json")
	s.write(frozen)
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(true, true)
	if s.changes() != "" || !slices.Equal(s.refused, []string{"1: change"}) || !strings.Contains(s.refusals[0], "InvalidObjectState") {
		t.Errorf("%s, refused %v: %q", s.changes(), s.refused, s.refusals)
	}
	s.write(off)
	if answer := s.pass(false); answer.Outcome != outcome.PassPlanned || s.records().Params["karpenter_enabled"] != "false" {
		t.Errorf("turning off: %s, %v", answer.Outcome, s.found().Problems)
	}
	if _, err := s.validate.Audit(t.Context(), "demo", 0); err != nil {
		t.Errorf("an audit: %v", err)
	}
}

// A rack's objects hold its user data. The writer of one rack's parameters does not read another's, also if the one name
// begins with the other, or the path leads out of the rack's folder.
func TestObjectsOfAnotherRack(t *testing.T) {
	for uri, read := range map[string]bool{
		"s3://own/racks/demo/c.json":           true,
		"s3://own/racks/demo/pools/c.json":     true,
		"s3://own/racks/demo-2/c.json":         false,
		"s3://own/racks/demo":                  false,
		"s3://own/racks/dem/c.json":            false,
		"s3://own/racks/other/c.json":          false,
		"s3://own/racks/c.json":                false,
		"s3://own/racks/{rack}/c.json":         false,
		"s3://own/racks/demo/../demo-2/c.json": false,
		"s3://own/racks/demo/./c.json":         false,
	} {
		s := begin(t, auth, on, "karpenter_config="+uri)
		s.validate.Observer.Deployment.ObjectPrefixes = []string{"s3://own/racks/{rack}/"}
		s.cloud.S3.Objects[strings.TrimPrefix(uri, "s3://")] = `{"ec2NodeClass":{"userData":"secret"}}`
		found, err := s.find()
		s.must(err)
		const refused = "which is not below a prefix that the stack allows (s3://own/racks/demo/); put it there"
		if read != (len(found.Problems) == 0) || !read && !strings.Contains(found.Problems[0].Message, refused) {
			t.Errorf("%s: %v", uri, found.Problems)
		}
	}
}

// When a bucket is deleted, its name is free, and anybody who creates a bucket of that name controls its content. So a
// bucket is read only if one of the accounts that the deployment names owns it.
func TestBucketsOfOtherAccounts(t *testing.T) {
	for _, c := range []struct {
		owner string
		read  bool
	}{{"", true}, {awsfake.Account, true}, {"222222222222", true}, {"333333333333", false}} {
		s := begin(t, auth, on, "karpenter_config=s3://config/racks/c.json")
		s.cloud.S3.Objects["config/racks/c.json"], s.cloud.S3.Owner = `{"nodePool":{"weight":5}}`, c.owner
		found, err := s.find()
		if err != nil {
			t.Fatal(err)
		}
		const refused = `karpenter_config is "s3://config/racks/c.json", which does not exist, or which the function validate may not read; ` +
			"look at the bucket's policy (s3:GetObject) and that of its encryption key (kms:Decrypt), " +
			"and whether it is a bucket of 123456789012, 222222222222 ("
		if c.read != (len(found.Problems) == 0) || !c.read && !strings.HasPrefix(found.Problems[0].Message, refused) {
			t.Errorf("of %q: %v", c.owner, found.Problems)
		}
	}
}

// An object that has changed changes the pool, although no parameter has changed.
func TestAnObjectThatChangesIsAChange(t *testing.T) {
	s := begin(t, auth, on, "karpenter_config=s3://config/racks/c.json")
	s.cloud.S3.Objects["config/racks/c.json"] = `{"nodePool":{"weight":5}}`
	s.pass(false)
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	s.cloud.S3.Objects["config/racks/c.json"] = `{"nodePool":{"weight":6}}`
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
}

// The cluster is read if the pools change. An API server that does not answer fails no pass.
func TestWhatRunsIsAskedWhereThePoolsChange(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false) // which asks whether it can be reached
	s.pass(false)
	if s.dialled != 1 {
		t.Errorf("asked %d times before anything ran, or where nothing changes", s.dialled)
	}
	s.write("karpenter_node_disk=50")
	s.pass(false)
	run, err := s.store.Run(t.Context(), "demo", int64(s.requests)-1, int64(s.requests))
	if err != nil || s.dialled != 2 || len(run.Effects) != 1 || !run.Effects[0].Replaces || run.Effects[0].Nodes != nil {
		t.Errorf("%v: asked %d times, effects %v", err, s.dialled, run.Effects)
	}
}

// The NodeClaims show which nodes drift, even if only the networks change.
func TestNodeClaimsTellWhatDrifts(t *testing.T) {
	s, api := begin(t, auth, on, "karpenter_arch=amd64,arm64"), k8sfake.New(t)
	s.validate.Dial = api.Dial
	s.pass(false)
	for name, arch := range map[string]string{"a": "amd64", "b": "arm64", "c": "amd64"} {
		api.Put("/apis/karpenter.sh/v1/nodeclaims/"+name, "karpenter.sh/v1", "NodeClaim", map[string]any{
			"metadata": map[string]any{"labels": map[string]any{
				"karpenter.sh/nodepool": "workload", "kubernetes.io/arch": arch, "karpenter.sh/capacity-type": "on-demand",
			}},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Launched", "status": "True"}}},
		})
	}
	for write, want := range map[string]string{
		"karpenter_arch=arm64":           "Karpenter replaces 2 of its 3 nodes (RequirementsDrifted)",
		"karpenter_cpu_limit=7":          "its 3 nodes stay",
		"security_group_ids=sg-01234567": "Karpenter may replace some or all of its 3 nodes (SecurityGroupDrift)",
	} {
		s.cloud.EC2.Tags["sg-01234567"] = map[string]string{}
		s.write(write)
		found, err := s.find()
		if err != nil || len(found.Problems) > 0 || len(found.Plan.Effects) != 1 || !strings.Contains(found.Plan.Effects[0].String(), want) {
			t.Errorf("%s: %v, %v, %v; want %q", write, err, found.Problems, found.Plan.Effects, want)
		}
		name, _, _ := strings.Cut(write, "=")
		s.write(name, "karpenter_arch=amd64,arm64")
	}
}

// A pass says beforehand how many nodes and pods a pool has that is taken away. A pool that is put back before its nodes are gone
// keeps them. A request that forces its removal takes the step that has been done.
func TestPodsOfAPoolThatIsTakenAway(t *testing.T) {
	const entry = `additional_karpenter_nodepools_config=[{"name":"gpu"}]`
	s, api := begin(t, auth, on, entry), k8sfake.New(t)
	s.validate.Dial = api.Dial
	s.pass(false)
	var gpu plan.Object
	p, err := s.store.Plan(t.Context(), "demo")
	s.must(err)
	for _, object := range p.NodePools.Objects {
		if object["kind"] == "NodePool" && object["metadata"].(map[string]any)["name"] == "gpu" {
			gpu = object
		}
	}
	api.Put("/apis/karpenter.sh/v1/nodepools/gpu", "karpenter.sh/v1", "NodePool", gpu)
	api.Put("/apis/karpenter.sh/v1/nodeclaims/a", "karpenter.sh/v1", "NodeClaim", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{
			"karpenter.sh/nodepool": "gpu", "kubernetes.io/arch": "amd64", "karpenter.sh/capacity-type": "on-demand",
		}},
		"status": map[string]any{"nodeName": "node-a", "conditions": []any{map[string]any{"type": "Launched", "status": "True"}}},
	})
	pod := func(name, node, phase, owner string) {
		api.Put("/api/v1/namespaces/shop/pods/"+name, "v1", "Pod", map[string]any{
			"metadata": map[string]any{"ownerReferences": []any{map[string]any{"kind": owner, "name": "x", "apiVersion": "apps/v1", "uid": "1"}}},
			"spec":     map[string]any{"nodeName": node}, "status": map[string]any{"phase": phase},
		})
	}
	pod("web-1", "node-a", "Running", "ReplicaSet")
	pod("web-2", "node-a", "Pending", "ReplicaSet")
	pod("agent", "node-a", "Running", "DaemonSet")
	pod("done", "node-a", "Succeeded", "Job")
	pod("elsewhere", "node-b", "Running", "ReplicaSet")
	pod("waiting", "", "Pending", "ReplicaSet")
	effects := func() (all []string) {
		found, err := s.find()
		s.must(err)
		for _, e := range found.Plan.Effects {
			all = append(all, e.String())
		}
		return all
	}
	s.write("additional_karpenter_nodepools_config")
	if got := effects(); !strings.Contains(got[0], "pool gpu is retired: it launches no more nodes, Karpenter empties "+
		"its 1 node (2 pods), as its disruption budget allows") {
		t.Errorf("taken away: %q", got)
	}
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	s.wants(s.forced(false, events.ForceRetire+"gpu"), outcome.PassPlanned, true, "nodepools")
	s.write(`additional_karpenter_nodepools_config=[{"name":"gpu"},{"name":"ci"}]`)
	api.Put("/apis/karpenter.sh/v1/nodepools/ci", "karpenter.sh/v1", "NodePool", map[string]any{"metadata": map[string]any{"name": "ci"}})
	if found, err := s.find(); err != nil || len(found.Problems) != 1 || !strings.HasPrefix(found.Problems[0].Path, "[1]") {
		t.Errorf("the name of somebody else's: %v, %+v", err, found.Problems)
	}
	s.write(entry)
	if got := effects(); got[0] != "pool gpu is changed: Karpenter replaces its 1 node (NodeClassDrift, NodePoolDrifted), "+
		"as its disruption budget allows" {
		t.Errorf("put back: %q", got)
	}
}

// Named subnets and security groups replace the discovered ones. An ID that does not exist is a problem.
func TestNamedSubnetsAndGroups(t *testing.T) {
	s := begin(t, auth, "subnet_ids=subnet-01234567", "security_group_ids=sg-01234567")
	s.cloud.EC2.Tags["subnet-01234567"], s.cloud.EC2.Tags["sg-01234567"] = map[string]string{}, map[string]string{}
	found, err := s.find()
	if err != nil || len(found.Problems) > 0 || strings.Join(found.Plan.Network.Subnets, " ") != "subnet-01234567" ||
		strings.Join(found.Plan.Network.SecurityGroups, " ") != "sg-01234567" {
		t.Errorf("%v: %v, %+v", err, found.Problems, found.Plan.Network)
	}
	s.write("subnet_ids=subnet-01234567,subnet-09999999")
	found, err = s.find()
	if err != nil || len(found.Problems) != 1 || found.Problems[0].Parameter != "subnet_ids" ||
		!strings.Contains(found.Problems[0].Message, "subnet-09999999") {
		t.Errorf("%v: %v", err, found.Problems)
	}
}

// The account's other networks are not the rack's, whoever owns them. A subnet that another account shares is in the VPC of
// the cluster.
func TestNetworksOfAnotherVPC(t *testing.T) {
	for written, elsewhere := range map[string]string{
		"subnet_ids=subnet-01234567": "", "security_group_ids=sg-01234567": "",
		"subnet_ids=subnet-01234567,subnet-09999999": "subnet-09999999", "security_group_ids=sg-01234567,sg-09999999": "sg-09999999",
	} {
		parameter, ids, _ := strings.Cut(written, "=")
		s := begin(t, auth, on, written)
		for id := range strings.SplitSeq(ids, ",") {
			s.cloud.EC2.Tags[id] = map[string]string{}
		}
		s.cloud.EC2.Elsewhere = map[string]string{elsewhere: "vpc-databases"}
		found, err := s.find()
		s.must(err)
		if elsewhere == "" {
			if len(found.Problems) > 0 {
				t.Errorf("%s: %v", written, found.Problems)
			}
			continue
		}
		if len(found.Problems) != 1 || found.Problems[0].Parameter != parameter ||
			!strings.Contains(found.Problems[0].Message,
				parameter+" has "+elsewhere+", which is in VPC vpc-databases, and cluster demo is in VPC "+awsfake.VPC) {
			t.Errorf("%s: %v", written, found.Problems)
		}
		t.Log("turning off is not held up, and nothing of the other VPC is tagged")
		s.cloud.EC2.Elsewhere = nil
		s.pass(false)
		s.cloud.EC2.Elsewhere = map[string]string{elsewhere: "vpc-databases"}
		s.write("karpenter_enabled=false")
		found, err = s.find()
		if chosen := append(found.Plan.Network.Subnets, found.Plan.Network.SecurityGroups...); err != nil || len(found.Problems) > 0 ||
			slices.Contains(chosen, elsewhere) {
			t.Errorf("%s, turning off: %v, %v, %v", written, err, found.Problems, chosen)
		}
	}
}

// EC2 describes a type that Karpenter's tables do not have. If EC2 does not know it either, its name decides. Both
// cases have a warning.
func TestArchitectureOfUnknownTypes(t *testing.T) {
	for _, c := range []struct{ known, want string }{{"arm64", "arm64"}, {"", "amd64"}} {
		s := begin(t, auth, on, "node_type=z9x.large")
		if c.known != "" {
			s.cloud.EC2.Types = map[string]ec2types.ArchitectureType{"z9x.large": ec2types.ArchitectureType(c.known)}
		}
		found, err := s.find()
		unknown := slices.IndexFunc(found.Warnings, func(p params.Problem) bool { return strings.Contains(p.Message, "does not know") })
		if err != nil || len(found.Problems) > 0 || unknown < 0 || found.Warnings[unknown].Parameter != "node_type" {
			t.Fatalf("%v: %v, %v", err, found.Problems, found.Warnings)
		}
		for _, object := range found.Plan.NodePools.Objects {
			if object["kind"] == "NodePool" && !strings.Contains(requirement(object, "kubernetes.io/arch"), c.want) {
				t.Errorf("EC2 says %q: %s", c.known, requirement(object, "kubernetes.io/arch"))
			}
		}
	}
}

func requirement(pool plan.Object, key string) string {
	spec := pool["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	for _, r := range spec["requirements"].([]any) {
		if r := r.(map[string]any); r["key"] == key {
			var all []string
			for _, v := range r["values"].([]any) {
				all = append(all, v.(string))
			}
			return strings.Join(all, ",")
		}
	}
	return ""
}
