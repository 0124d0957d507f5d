package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

// account answers AWS calls by their action or, for EKS, by their path below the cluster. It denies every call without
// an answer.
type account struct {
	answers map[string]string
	mu      sync.Mutex
	called  []string
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	action, xml := strings.TrimPrefix(r.URL.Path, "/clusters/prod"), false
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		action = target[strings.LastIndex(target, ".")+1:]
	} else if form, _ := url.ParseQuery(string(body)); form.Get("Action") != "" {
		action, xml = form.Get("Action"), true
	}
	a.mu.Lock()
	a.called = append(a.called, r.Method+" "+action)
	a.mu.Unlock()
	// Some actions are called for several things, and each has its own answer.
	answer, known := a.answers[action]
	for _, special := range []string{"prod-karpenter", "L-244521F2", "kms%3ADecrypt", "ec2%3ARunInstances"} {
		if it, ok := a.answers[action+" "+special]; ok && strings.Contains(string(body), special) {
			answer, known = it, true
		}
	}
	failed := !known || strings.Contains(answer, "__type") || strings.Contains(answer, "<Error>")
	switch {
	case !known && xml:
		answer = `<ErrorResponse><Errors><Error><Code>AccessDenied</Code><Message>no</Message></Error></Errors><Error>` +
			`<Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`
	case !known:
		answer = `{"__type":"AccessDeniedException","message":"no"}`
		w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
	case failed && !xml:
		code := strings.Split(answer, `"`)[3]
		w.Header().Set("X-Amzn-Errortype", code)
	}
	if failed {
		w.WriteHeader(http.StatusForbidden)
	}
	_, _ = io.WriteString(w, answer)
}

// observed reads the account, and the cluster to which dial connects, with real clients.
func observed(t *testing.T, a *account, dial k8s.Connector) *doctor.Observed {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	config := aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
		RetryMaxAttempts: 1, HTTPClient: server.Client(),
	}
	return Read(context.Background(), "prod", "", ownership.Paths{Prefix: ownership.DefaultPrefix}, Clients{
		Parameters: ssm.NewFromConfig(config), STS: sts.NewFromConfig(config), EKS: eks.NewFromConfig(config),
		EC2: ec2.NewFromConfig(config),
		IAM: iam.NewFromConfig(config), SQS: sqs.NewFromConfig(config), KMS: kms.NewFromConfig(config),
		Quotas: servicequotas.NewFromConfig(config),
		Rules:  eventbridge.NewFromConfig(config),
		Dial:   dial,
	})
}

func noDial(context.Context, plan.Cluster) (*k8s.Client, error) {
	return nil, errors.New("dial: no route")
}

// If everything is denied, every source is unseen with the service's own error, and each check reports that.
func TestDenied(t *testing.T) {
	a := &account{}
	o := observed(t, a, noDial)
	for source, want := range map[doctor.Source]string{
		doctor.Parameters:    "SSM GetParametersByPath: AccessDeniedException: no",
		doctor.TheCluster:    "EKS DescribeCluster: AccessDeniedException: no",
		doctor.AllParameters: "SSM DescribeParameters: AccessDeniedException: no",
		doctor.Hold:          "SSM GetParameter: AccessDeniedException: no",
		doctor.Budgets:       "EKS DescribeCluster: AccessDeniedException: no", doctor.Instances: "EC2 DescribeInstances: AccessDenied: no",
		doctor.Keys:   "EC2 GetEbsDefaultKmsKeyId: AccessDenied: no",
		doctor.Quotas: "Service Quotas GetServiceQuota: AccessDeniedException: no",
		doctor.Rules:  "EventBridge ListRules: AccessDeniedException: no",
	} {
		if o.Unseen[source] != want {
			t.Errorf("%s: %q, want %q", source, o.Unseen[source], want)
		}
	}
	report := doctor.Examine(o)
	if len(report.Good) > 0 || report.Count(doctor.Unknown) != len(report.Findings) || len(report.Findings) < 20 {
		t.Errorf("%d findings, good %v: %+v", len(report.Findings), report.Good, report.Findings)
	}
}

const missingRole = `<ErrorResponse><Error><Code>NoSuchEntity</Code><Message>none</Message></Error></ErrorResponse>`

// answers returns the answers of an account in which everything can be read.
func answers() map[string]string {
	role := func(arn string) string {
		return "<R><GetRoleResult><Role><Path>/</Path><RoleName>r</RoleName><RoleId>1</RoleId>" +
			"<CreateDate>2026-01-01T00:00:00Z</CreateDate><Arn>" + arn + "</Arn></Role></GetRoleResult></R>"
	}
	return map[string]string{
		"GetParametersByPath": `{"Parameters":[{"Name":"/sawhorse/racks/prod/params/karpenter_config","Type":"String",` +
			`"Value":"{\"ec2NodeClass\":{\"blockDeviceMappings\":[{\"deviceName\":\"/dev/xvda\",\"ebs\":{\"kmsKeyID\":\"key-2\"}}]}}"}]}`,
		"GetParameter": `{"Parameter":{"Name":"/sawhorse/hold","Type":"String",` +
			`"Value":"{\"racks\":[\"prod\"],\"reason\":\"upgrade\"}"}}`,
		"DescribeParameters": `{"Parameters":[{"Name":"/a"},{"Name":"/b"}]}`,
		"GetCallerIdentity": `<R><GetCallerIdentityResult><Arn>arn:aws:sts::111122223333:assumed-role/ops/me</Arn>` +
			`</GetCallerIdentityResult></R>`,
		"GetRole":                role("arn:aws:iam::111122223333:role/team/ops"),
		"GetRole prod-karpenter": role("arn:aws:iam::111122223333:role/sawhorse/prod-karpenter"),
		"": `{"cluster":{"name":"prod","arn":"arn:aws:eks:eu-central-1:111122223333:cluster/prod","status":"ACTIVE","version":"1.35",` +
			`"accessConfig":{"authenticationMode":"API_AND_CONFIG_MAP"},"identity":{"oidc":{"issuer":"https://oidc/1"}},
			"resourcesVpcConfig":{"vpcId":"vpc-1","clusterSecurityGroupId":"sg-1","endpointPublicAccess":true}}}`,
		"/node-groups": `{"nodegroups":["system"]}`,
		"/node-groups/system": `{"nodegroup":{"nodegroupName":"system","subnets":["subnet-a"],"taints":[{"key":"own",` +
			`"effect":"NO_SCHEDULE"}]}}`,
		"/addons": `{"addons":["coredns"]}`,
		"/addons/coredns": `{"addon":{"addonName":"coredns","addonVersion":"v1","status":"DEGRADED",` +
			`"health":{"issues":[{"message":"no room"}]}}}`,
		"/addons/supported-versions": `{"addons":[{"addonVersions":[{"addonVersion":"v3"},{"addonVersion":"v2"}]}]}`,
		"/pod-identity-associations": `{"associations":[{"namespace":"kube-system","serviceAccount":"karpenter"}]}`,
		"GetOpenIDConnectProvider":   missingRole,
		"DescribeSubnets": `<R><subnetSet><item><subnetId>subnet-a</subnetId><vpcId>vpc-1</vpcId>` +
			`<availabilityZone>eu-central-1a</availabilityZone><availableIpAddressCount>7</availableIpAddressCount></item>` +
			`<item><subnetId>subnet-b</subnetId><vpcId>vpc-2</vpcId></item></subnetSet></R>`,
		"DescribeSecurityGroups": `<R><securityGroupInfo><item><groupId>sg-1</groupId><vpcId>vpc-1</vpcId>` +
			`<tagSet><item><key>karpenter.sh/discovery</key>` +
			`<value>other</value></item></tagSet></item><item><groupId>sg-2</groupId><vpcId>vpc-2</vpcId></item></securityGroupInfo></R>`,
		"DescribeVpcEndpoints": `<R><vpcEndpointSet><item><serviceName>com.amazonaws.eu-central-1.sqs</serviceName>` +
			`<vpcEndpointType>Interface</vpcEndpointType><state>available</state><privateDnsEnabled>true</privateDnsEnabled></item>` +
			`</vpcEndpointSet></R>`,
		"DescribeInstances": `<R><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId>` +
			`<instanceType>m5.large</instanceType><instanceLifecycle>spot</instanceLifecycle>
			<cpuOptions><coreCount>1</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions><metadataOptions>
				<httpPutResponseHopLimit>2</httpPutResponseHopLimit></metadataOptions></item></instancesSet></item></reservationSet></R>`,
		"GetEbsDefaultKmsKeyId": `<R><kmsKeyId>key-1</kmsKeyId></R>`,
		"DescribeKey":           `{"KeyMetadata":{"KeyId":"k","Arn":"arn:k","KeyState":"Enabled","KeyManager":"CUSTOMER"}}`,
		"GetKeyPolicy":          `{"Policy":"{}"}`, "ListGrants": `{"Grants":[{"GranteePrincipal":"arn:someone"}]}`,
		"GetServiceQuota": `{"Quota":{"Value":64}}`, "GetServiceQuota L-244521F2": `{"__type":"NoSuchResourceException","message":"none"}`,
		"GetAWSDefaultServiceQuota": `{"Quota":{"Value":300}}`,
		"GetAccountSummary": `<R><GetAccountSummaryResult><SummaryMap><entry><key>Roles</key><value>7</value></entry>` +
			`</SummaryMap></GetAccountSummaryResult></R>`,
		"ListRules":               `{"Rules":[{"Name":"prod-karpenter"},{"Name":"other"}]}`,
		"SimulatePrincipalPolicy": "<R><SimulatePrincipalPolicyResult><EvaluationResults/></SimulatePrincipalPolicyResult></R>",
		"SimulatePrincipalPolicy ec2%3ARunInstances": strings.Replace(
			simulation("ec2:RunInstances", "OrganizationsDecisionDetail", "AllowedByOrganizations"), "<EvaluationResults>",
			"<EvaluationResults><member><EvalActionName>ec2:CreateTags</EvalActionName><EvalDecision>implicitDeny</EvalDecision>"+
				"<PermissionsBoundaryDecisionDetail><AllowedByPermissionsBoundary>false</AllowedByPermissionsBoundary>"+
				"</PermissionsBoundaryDecisionDetail></member>", 1),
		"SimulatePrincipalPolicy kms%3ADecrypt": simulation("kms:CreateGrant", "PermissionsBoundaryDecisionDetail",
			"AllowedByPermissionsBoundary"),
	}
}

// simulation returns one action that policies other than the role's own deny, one that the role's own policies deny,
// and one without that detail.
func simulation(action, detail, allowed string) string {
	return fmt.Sprintf("<R><SimulatePrincipalPolicyResult><EvaluationResults><member><EvalActionName>%[1]s</EvalActionName>"+
		"<EvalDecision>explicitDeny</EvalDecision><%[2]s><%[3]s>false</%[3]s></%[2]s></member>"+
		"<member><EvalActionName>own:Policy</EvalActionName><EvalDecision>implicitDeny</EvalDecision><%[2]s><%[3]s>true</%[3]s>"+
		"</%[2]s></member>"+
		"<member><EvalActionName>no:Detail</EvalActionName><EvalDecision>implicitDeny</EvalDecision></member></EvaluationResults>"+
		"</SimulatePrincipalPolicyResult></R>", action, detail, allowed)
}

func TestLook(t *testing.T) {
	a, server := &account{answers: answers()}, k8sfake.New(t)
	server.Put("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web", "policy/v1", "PodDisruptionBudget",
		map[string]any{"status": map[string]any{"expectedPods": int64(3)}})
	o := observed(t, a, server.Dial)
	if len(o.Unseen) > 0 {
		t.Fatalf("unseen: %v", o.Unseen)
	}
	got := []any{
		len(o.Params), o.Caller, o.Facts.Cluster.VPC, o.Facts.Cluster.Version, o.PublicAPI, o.Facts.Cluster.OIDCIssuer,
		o.Facts.NodeGroups[0].Subnets, o.Facts.NodeGroups[0].Taints[0].Effect, o.AddOns, o.Association, o.Facts.OIDCProvider,
		len(o.Facts.Subnets), o.Free["subnet-a"], len(o.Facts.SecurityGroups), o.Facts.SecurityGroups[0].Tags, o.Endpoints,
		o.Instances[0], o.Keys, o.Quotas[doctor.SpotVCPU],
		o.Quotas[doctor.RulesPerBus], o.Account, o.Rules, o.RuleExists, o.Denied, o.Limited, o.Bounded,
		o.Budgets[0].Status.ExpectedPods, o.Parameters, strings.HasPrefix(o.Held, "the rack is held (upgrade)"), o.Facts.Cluster.AuthMode,
	}
	want := []any{
		1, "arn:aws:iam::111122223333:role/team/ops", "vpc-1", "1.35", true, "https://oidc/1", []string{"subnet-a"}, "NO_SCHEDULE",
		[]doctor.AddOn{{Name: "coredns", Version: "v1", Status: "DEGRADED", Issues: []string{"no room"}, Listed: []string{"v3", "v2"}}},
		true, false,
		2, 7, 2, map[string]string{"karpenter.sh/discovery": "other"}, []doctor.Endpoint{
			{Service: "com.amazonaws.eu-central-1.sqs", Type: "Interface", State: "available", PrivateDNS: true},
		},
		doctor.Instance{ID: "i-1", Type: "m5.large", VCPU: 2, Spot: true, HopLimit: 2, Tags: map[string]string{}},
		[]doctor.Key{
			{ID: "key-1", State: "Enabled", Policy: "{}", Grantees: []string{"arn:someone"}},
			{ID: "key-2", State: "Enabled", Policy: "{}", Grantees: []string{"arn:someone"}},
		},
		64.0, 300.0, map[string]int{"Roles": 7}, 2, true, []string{"ec2:RunInstances"}, []string{"ec2:CreateTags"},
		[]string{"kms:CreateGrant"}, int32(3), 2, true,
		"API_AND_CONFIG_MAP",
	}
	for i := range want {
		if fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
	for _, call := range a.called {
		method, action, _ := strings.Cut(call, " ")
		reads := slices.ContainsFunc([]string{"Get", "List", "Describe", "Simulate"}, func(verb string) bool {
			return strings.HasPrefix(action, verb)
		})
		if !reads && (method != http.MethodGet || action != "" && action[0] != '/') {
			t.Errorf("it calls %s", call)
		}
	}
	if len(server.Writes) > 0 {
		t.Errorf("it writes %v", server.Writes)
	}
}

// Conditions and events of Karpenter's objects become findings. A NodeClaim that has just begun has not failed, and
// neither has one that is being deleted.
func TestKarpenterObjects(t *testing.T) {
	server := k8sfake.New(t)
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	put := func(path, apiVersion, kind string, conditions ...any) map[string]any {
		o := server.Put(path, apiVersion, kind, map[string]any{"status": map[string]any{"conditions": conditions}})
		o.SetLabels(map[string]string{ownership.TagRack: "prod"})
		return o.Object
	}
	condition := func(kind, status, reason string, age time.Duration) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": "why", "lastTransitionTime": ago(age)}
	}
	put("/apis/karpenter.k8s.aws/v1/ec2nodeclasses/workload", "karpenter.k8s.aws/v1", "EC2NodeClass", condition("Ready", "True", "Ready", 0))
	put("/apis/karpenter.sh/v1/nodepools/workload", "karpenter.sh/v1", "NodePool", condition("Ready", "True", "Ready", 0),
		condition("NodeRegistrationHealthy", "False", "RegistrationFailed", 0))
	put("/apis/karpenter.sh/v1/nodepools/build", "karpenter.sh/v1", "NodePool", condition("NodeClassReady", "False", "NodeClassNotReady", 0))
	server.Put("/apis/karpenter.sh/v1/nodepools/theirs", "karpenter.sh/v1", "NodePool", map[string]any{})
	const claims, v1 = "/apis/karpenter.sh/v1/nodeclaims/", "karpenter.sh/v1"
	launched := condition("Launched", "True", "Launched", time.Hour)
	put(claims+"denied", v1, "NodeClaim", condition("Launched", "Unknown", "Unauthorized", 0),
		condition("Registered", "Unknown", "NodeNotFound", time.Hour))
	put(claims+"new", v1, "NodeClaim", condition("Launched", "Unknown", "AwaitingReconciliation", 0))
	put(claims+"starting", v1, "NodeClaim", launched, condition("Registered", "Unknown", "NodeNotFound", time.Minute))
	put(claims+"absent", v1, "NodeClaim", launched, condition("Registered", "Unknown", "NodeNotFound", 6*time.Minute))
	put(claims+"unready", v1, "NodeClaim", launched, condition("Registered", "True", "Registered", 0),
		condition("Initialized", "Unknown", "NodeNotReady", 6*time.Minute))
	leaving := put(claims+"leaving", v1, "NodeClaim", condition("Launched", "Unknown", "LaunchFailed", 0))
	leaving["metadata"].(map[string]any)["deletionTimestamp"] = ago(0)
	put(claims+"node", v1, "NodeClaim", launched, condition("Registered", "True", "Registered", 0),
		condition("Initialized", "True", "Initialized", 0))
	event := func(name, claim, reason string, age time.Duration) {
		server.Put("/api/v1/namespaces/default/events/"+name, "v1", "Event", map[string]any{
			"reason": reason, "message": "VcpuLimitExceeded: more", "involvedObject": map[string]any{"kind": "NodeClaim", "name": claim},
			"lastTimestamp": ago(age),
		})
	}
	event("a", "gone", "InsufficientCapacityError", time.Minute)
	event("b", "older", "InsufficientCapacityError", 2*time.Hour)
	event("c", "node", "Disrupted", time.Minute)
	o := observed(t, &account{answers: answers()}, server.Dial)
	wantPools := []doctor.PoolObject{
		{Kind: "EC2NodeClass", Name: "workload"}, {Kind: "NodePool", Name: "build", NotReady: "NodeClassReady=False NodeClassNotReady why"},
		{Kind: "NodePool", Name: "workload", Unhealthy: "NodeRegistrationHealthy=False RegistrationFailed why"},
	}
	wantLaunches := []doctor.Launch{
		{NodeClaim: "absent", Words: "Registered=Unknown NodeNotFound why"},
		{NodeClaim: "denied", Words: "Launched=Unknown Unauthorized why"},
		{NodeClaim: "gone", Words: ": InsufficientCapacityError: VcpuLimitExceeded: more"},
		{NodeClaim: "unready", Words: "Initialized=Unknown NodeNotReady why"},
	}
	slices.SortFunc(o.Pools, func(a, b doctor.PoolObject) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	slices.SortFunc(o.Launches, func(a, b doctor.Launch) int { return strings.Compare(a.NodeClaim, b.NodeClaim) })
	if !slices.Equal(o.Pools, wantPools) || !slices.Equal(o.Launches, wantLaunches) || len(o.Unseen) > 0 {
		t.Errorf("%+v\n%+v\n%v", o.Pools, o.Launches, o.Unseen)
	}
}

// A pod waits for a node if it has for five minutes, and if Karpenter has said last that it launches none for it.
func TestPodsThatWait(t *testing.T) {
	server := k8sfake.New(t)
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	const long = 10 * time.Minute
	events := 0
	says := func(pod, reason, message string, age time.Duration) {
		events++
		server.Put(fmt.Sprintf("/api/v1/namespaces/shop/events/%d", events), "v1", "Event", map[string]any{
			"reason": reason, "message": message, "lastTimestamp": ago(age), "source": map[string]any{"component": "karpenter"},
			"involvedObject": map[string]any{"kind": "Pod", "namespace": "shop", "name": pod, "uid": pod},
		})
	}
	pod := func(name string, age time.Duration) map[string]any {
		o := server.Put("/api/v1/namespaces/shop/pods/"+name, "v1", "Pod", map[string]any{"status": map[string]any{"phase": "Pending",
			"conditions": []any{map[string]any{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0 of 3 nodes",
				"lastTransitionTime": ago(age)}}}})
		o.SetUID(apitypes.UID(name))
		says(name, "FailedScheduling", "Failed to schedule pod, "+name, 2*time.Minute)
		return o.Object["metadata"].(map[string]any)
	}
	pod("long", long)
	pod("young", time.Minute)
	pod("limit", long)
	says("limit", "FailedScheduling", `all available instance types exceed limits for nodepool: "workload"`, time.Minute)
	pod("nominated", long)
	says("nominated", "Nominated", "Pod should schedule on: nodeclaim/workload-a", time.Minute)
	pod("leaving", long)["deletionTimestamp"] = ago(0)
	pod("agent", long)["ownerReferences"] = []any{map[string]any{"kind": "DaemonSet", "name": "agent", "controller": true}}
	says("gone", "FailedScheduling", "Failed to schedule pod", time.Minute)
	o := observed(t, &account{answers: answers()}, server.Dial)
	var got []string
	for _, w := range o.Waiting {
		got = append(got, fmt.Sprintf("%s %v %s", w.Pod, w.Limit, w.Reason))
		if age := time.Since(w.Since); age < long || age > long+time.Minute {
			t.Errorf("%s since %s", w.Pod, w.Since)
		}
	}
	slices.Sort(got)
	want := []string{`shop/limit true all available instance types exceed limits for nodepool: "workload"`,
		"shop/long false Failed to schedule pod, long"}
	if !slices.Equal(got, want) || len(o.Unseen) > 0 {
		t.Errorf("%q, %v", got, o.Unseen)
	}
}

// A rack that was never on has no role, and so no boundary to check.
func TestKeyBeforeTheRole(t *testing.T) {
	all := answers()
	all["GetRole prod-karpenter"] = missingRole
	o := observed(t, &account{answers: all}, noDial)
	if o.Unseen[doctor.Keys] != "" || len(o.Keys) != 2 || o.Bounded != nil {
		t.Errorf("%q %+v %v", o.Unseen[doctor.Keys], o.Keys, o.Bounded)
	}
}

// EBS's own key is not read: an account that has encrypted nothing yet does not have it.
func TestKeyOfEBS(t *testing.T) {
	all := answers()
	all["GetParametersByPath"], all["GetEbsDefaultKmsKeyId"] = `{"Parameters":[]}`, `<R><kmsKeyId>alias/aws/ebs</kmsKeyId></R>`
	delete(all, "DescribeKey")
	o := observed(t, &account{answers: all}, noDial)
	if o.Unseen[doctor.Keys] != "" || len(o.Keys) != 1 || !o.Keys[0].AWSManaged || o.Keys[0].State != "Enabled" {
		t.Errorf("%q %+v", o.Unseen[doctor.Keys], o.Keys)
	}
}

// Which subnets and security groups the nodes use is unknown without the node groups.
func TestDeniedNodeGroups(t *testing.T) {
	all, a := answers(), &account{}
	delete(all, "/node-groups")
	a.answers = all
	o := observed(t, a, k8sfake.New(t).Dial)
	if len(o.Unseen) != 1 || o.Unseen[doctor.Facts] != "EKS ListNodegroups: AccessDeniedException: no" {
		t.Errorf("%v", o.Unseen)
	}
	if slices.Contains(a.called, "POST DescribeSubnets") || slices.Contains(a.called, "POST DescribeSecurityGroups") {
		t.Errorf("it reads a network of unknown nodes: %v", a.called)
	}
}

// A rack with Karpenter off is read as by a pass that turns it on, although nobody has let it into the cluster.
func TestBeforeKarpenterIsOn(t *testing.T) {
	all := answers()
	all["ListRules"] = `{"Rules":[{"Name":"other"}]}`
	all["/addons/eks-pod-identity-agent"] = `{"__type":"ResourceNotFoundException","message":"none"}`
	all["/node-groups/system"] = `{"nodegroup":{"nodegroupName":"system","subnets":["subnet-a"],"labels":{"convox-build":"true"}}}`
	all["GetQueueUrl"] = `{"__type":"QueueDoesNotExist","message":"none"}`
	all["ListTagsForResource"] = `{"__type":"ResourceNotFoundException","message":"none"}`
	o := observed(t, &account{answers: all}, k8sfake.New(t).Dial)
	if want := []string{"IAM role prod-karpenter", "IAM role prod-karpenter-nodes"}; len(o.Unseen) > 0 ||
		!slices.Equal(o.Facts.Unmanaged, want) || o.Free["subnet-a"] != 7 {
		t.Errorf("unseen %v, unmanaged %q, free %v", o.Unseen, o.Facts.Unmanaged, o.Free)
	}
}

// Without a valid name of the cluster, no cluster is examined.
func TestRefusedClusterName(t *testing.T) {
	all := answers()
	all["GetParametersByPath"] = `{"Parameters":[{"Name":"/sawhorse/racks/prod/params/cluster_name","Type":"String","Value":"a b"}]}`
	all["ListRules"] = `{"Rules":[]}`
	o := observed(t, &account{answers: all}, noDial)
	if o.Facts.Cluster != nil || o.Missing || !strings.Contains(o.Unseen[doctor.TheCluster], "cluster_name has a problem") {
		t.Errorf("%+v %q", o.Facts.Cluster, o.Unseen[doctor.TheCluster])
	}
}

// An add-on may be deleted while doctor looks.
func TestADeletedAddOn(t *testing.T) {
	all := answers()
	all["/addons/coredns"] = `{"__type":"ResourceNotFoundException","message":"none"}`
	if o := observed(t, &account{answers: all}, noDial); o.Unseen[doctor.AddOns] != "" || len(o.AddOns) > 0 {
		t.Errorf("%q %+v", o.Unseen[doctor.AddOns], o.AddOns)
	}
}

func TestMissingCluster(t *testing.T) {
	all := answers()
	all[""] = `{"__type":"ResourceNotFoundException","message":"none"}`
	o := observed(t, &account{answers: all}, noDial)
	if !o.Missing || o.Facts.Cluster != nil || o.Rules != 2 {
		t.Errorf("%+v", o)
	}
	for _, source := range []doctor.Source{doctor.Facts, doctor.Associations, doctor.Addresses, doctor.AddOnVersions, doctor.Pods} {
		if o.Unseen[source] != `there is no EKS cluster "prod" in this account and region` {
			t.Errorf("%s: %q", source, o.Unseen[source])
		}
	}
}

func TestClosedCluster(t *testing.T) {
	answer := http.StatusUnauthorized
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
	t.Cleanup(refusing.Close)
	config := aws.Config{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("id", "key", "")}
	cloud := awsfake.New()
	cloud.EKS.Cluster = &types.Cluster{
		Name: new("prod"), Arn: new("arn:aws:eks:eu-central-1:111122223333:cluster/prod"), Endpoint: &refusing.URL,
	}
	stranger := k8s.Dial(config, cloud.EKS)
	for _, c := range []struct {
		mode string
		dial k8s.Connector
		want string
	}{
		{"API", noDial, "dial: no route"},
		{"CONFIG_MAP", noDial, "dial: no route"},
		{"API", stranger, "the cluster's API server does not know the caller: it has no access entry"},
		{"CONFIG_MAP", stranger, "the cluster's API server does not know the caller: " +
			"the cluster's access mode is CONFIG_MAP, and access entries come with karpenter_auth_mode=true"},
	} {
		all := answers()
		all[""] = strings.Replace(all[""], "API_AND_CONFIG_MAP", c.mode, 1)
		o := observed(t, &account{answers: all}, c.dial)
		for _, source := range []doctor.Source{doctor.Nodes, doctor.Budgets} {
			if o.Unseen[source] != c.want {
				t.Errorf("%s: %q, want %q", source, o.Unseen[source], c.want)
			}
		}
	}
	answer = http.StatusServiceUnavailable
	all := answers()
	o := observed(t, &account{answers: all}, stranger)
	if got := o.Unseen[doctor.Nodes]; !strings.Contains(got, "the API server answered 503") || strings.Contains(got, "caller") {
		t.Errorf("a server that has a failure: %q", got)
	}
}

// A caller that may not read nodes may still read the rest.
func TestForbiddenNodes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/nodes") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"nodes is forbidden","code":403}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/"+ownership.CNI) {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
	}))
	t.Cleanup(server.Close)
	o := observed(t, &account{answers: answers()}, func(context.Context, plan.Cluster) (*k8s.Client, error) {
		return k8s.New("demo", &rest.Config{Host: server.URL})
	})
	if !strings.Contains(o.Unseen[doctor.Nodes], "nodes is forbidden") || len(o.Unseen) != 1 {
		t.Errorf("%v", o.Unseen)
	}
}
