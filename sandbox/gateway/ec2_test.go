package gateway_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	scalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

func tagged(key, value string) []types.Filter {
	return []types.Filter{{Name: aws.String("tag:" + key), Values: []string{value}}}
}

func TestTagsOfSubnetsAndSecurityGroups(t *testing.T) {
	ctx, client := context.Background(), ec2.NewFromConfig(sandbox.Config())
	e, _ := cluster(t, "tags")
	about := need[*eks.DescribeClusterOutput](t)(e.DescribeCluster(ctx,
		&eks.DescribeClusterInput{Name: aws.String("tags")})).Cluster.ResourcesVpcConfig
	subnet, group := about.SubnetIds[0], *about.ClusterSecurityGroupId
	tag := types.Tag{Key: aws.String("karpenter.sh/discovery"), Value: aws.String("tags")}
	find := func() []string {
		t.Helper()
		subnets := need[*ec2.DescribeSubnetsOutput](t)(client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{
			Filters: tagged(*tag.Key, *tag.Value),
		}))
		groups := need[*ec2.DescribeSecurityGroupsOutput](t)(client.DescribeSecurityGroups(ctx,
			&ec2.DescribeSecurityGroupsInput{Filters: tagged(*tag.Key, *tag.Value)}))
		ids := []string{}
		for _, s := range subnets.Subnets {
			ids = append(ids, *s.SubnetId)
		}
		for _, g := range groups.SecurityGroups {
			ids = append(ids, *g.GroupId)
		}
		return ids
	}
	need[*ec2.CreateTagsOutput](t)(client.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{subnet, group}, Tags: []types.Tag{tag}}))
	if got := find(); !slices.Equal(got, []string{subnet, group}) {
		t.Errorf("tagged %v, want %v", got, []string{subnet, group})
	}
	need[*ec2.DeleteTagsOutput](t)(client.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{subnet, group}, Tags: []types.Tag{tag}}))
	if got := find(); len(got) != 0 {
		t.Errorf("still tagged: %v", got)
	}
	_, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0123456789abcdef0"}})
	want(t, "no such subnet", err, "InvalidSubnetID.NotFound")
	_, err = client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-0123456789abcdef0"}})
	want(t, "no such group", err, "InvalidGroup.NotFound")
}

func TestCapacityReservations(t *testing.T) {
	ctx, client := context.Background(), ec2.NewFromConfig(sandbox.Config())
	found := func(in *ec2.DescribeCapacityReservationsInput) []types.CapacityReservation {
		t.Helper()
		return need[*ec2.DescribeCapacityReservationsOutput](t)(client.DescribeCapacityReservations(ctx, in)).CapacityReservations
	}
	if all := found(&ec2.DescribeCapacityReservationsInput{}); len(all) != 0 {
		t.Errorf("at first: %+v", all)
	}
	id := *need[*ec2.CreateCapacityReservationOutput](t)(client.CreateCapacityReservation(ctx, &ec2.CreateCapacityReservationInput{
		InstanceType: aws.String("m5.large"), InstancePlatform: "Linux/UNIX", AvailabilityZone: aws.String("us-east-1b"),
		InstanceCount: aws.Int32(3), InstanceMatchCriteria: "targeted",
	})).CapacityReservation.CapacityReservationId
	active := []types.Filter{{Name: aws.String("state"), Values: []string{"active"}}}
	one := found(&ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}, Filters: active})
	if len(one) != 1 || *one[0].InstanceType != "m5.large" || *one[0].AvailabilityZone != "us-east-1b" || *one[0].TotalInstanceCount != 3 ||
		*one[0].AvailableInstanceCount != 3 || one[0].InstanceMatchCriteria != "targeted" || one[0].Interruptible == nil ||
		*one[0].OwnerId != "000000000000" {
		t.Errorf("created: %+v", one)
	}
	if some := found(&ec2.DescribeCapacityReservationsInput{Filters: tagged("team", "web")}); len(some) != 0 {
		t.Errorf("with a tag that none has: %+v", some)
	}
	_, err := client.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-0"}})
	want(t, "no such reservation", err, "InvalidCapacityReservationId.NotFound")
	need[*ec2.CancelCapacityReservationOutput](t)(client.CancelCapacityReservation(ctx,
		&ec2.CancelCapacityReservationInput{CapacityReservationId: &id}))
	if all := found(&ec2.DescribeCapacityReservationsInput{Filters: active}); len(all) != 0 {
		t.Errorf("after its end: %+v", all)
	}
}

// The price list says what an instance type has that a call filters by.
func TestOneProduct(t *testing.T) {
	req, err := http.NewRequest(http.MethodPost, *sandbox.Config().BaseEndpoint, strings.NewReader(
		`{"ServiceCode":"AmazonEC2","Filters":[{"Type":"TERM_MATCH","Field":"instanceType","Value":"m5.large"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "AWSPriceListService.GetProducts")
	req.Header.Set("Authorization", "Credential=A/20260101/us-east-1/pricing/aws4_request")
	resp := need[*http.Response](t)(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	var list struct{ PriceList []string }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.PriceList) != 1 ||
		!strings.Contains(list.PriceList[0], `"instanceType":"m5.large","memory":"8 GiB","vcpu":"2"`) {
		t.Errorf("%v: %v", list.PriceList, err)
	}
}

// EC2 authorizes each instance of a call by its own tags, and terminates all or none.
func TestInstancesAreJudgedOneByOne(t *testing.T) {
	ctx, root := context.Background(), ec2.NewFromConfig(sandbox.Config())
	run := func(tag string) string {
		return *need[*ec2.RunInstancesOutput](t)(root.RunInstances(ctx, &ec2.RunInstancesInput{
			ImageId: imageBehind(t, standard).ImageId, InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			TagSpecifications: []types.TagSpecification{
				{ResourceType: "instance", Tags: []types.Tag{
					{Key: &tag, Value: aws.String("of-" + tag)}, {Key: aws.String("a"), Value: aws.String(tag)},
				}},
			},
		})).Instances[0].InstanceId
	}
	one, two, theirs := run("pool"), run("pool"), run("other")
	need[*ec2.CreateTagsOutput](t)(root.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{two}, Tags: []types.Tag{{Key: aws.String("pool"), Value: aws.String("another")}},
	}))
	client := ec2.NewFromConfig(as(t, "ender",
		policyOf([]string{
			`ec2:TerminateInstances arn:aws:ec2:us-east-1:000000000000:instance/* {"StringLike":{"aws:ResourceTag/pool":"*"}}`,
		})))
	for _, c := range []struct {
		ids    []string
		wanted string
	}{{[]string{one, theirs}, "UnauthorizedOperation"}, {[]string{theirs, one}, "UnauthorizedOperation"}, {[]string{one, two}, ""}} {
		_, err := client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: c.ids})
		want(t, strings.Join(c.ids, " "), err, c.wanted)
	}
}

// A dry-run launch is authorized against everything that it creates and uses: the requested tags, the subnet's tags,
// the image's owner and tags, the snapshots.
func TestLaunchesAreJudged(t *testing.T) {
	ctx, root := context.Background(), ec2.NewFromConfig(sandbox.Config())
	_, _ = cluster(t, "launches")
	subnet := *need[*ec2.DescribeSubnetsOutput](t)(root.DescribeSubnets(ctx,
		&ec2.DescribeSubnetsInput{Filters: tagged("Name", "launches")})).Subnets[0].SubnetId
	const region = "arn:aws:ec2:us-east-1:"
	client := ec2.NewFromConfig(as(t, "launcher", policyOf([]string{
		"ec2:RunInstances " + region + `000000000000:instance/* {"StringEquals":{"aws:RequestTag/pool":"a"}}`,
		"ec2:CreateTags " + region +
			`000000000000:instance/* {"StringEquals":{"aws:RequestTag/pool":"a","ec2:CreateAction":"RunInstances"}}`,
		"ec2:RunInstances " + region + `:image/* {"StringEquals":{"ec2:Owner":"amazon"}}`,
		"ec2:RunInstances " + region + `:image/* {"StringEquals":{"ec2:Owner":"000000000000"},"StringLike":{"aws:ResourceTag/for":"*"}}`,
		"ec2:RunInstances " + region + `000000000000:subnet/* {"StringEquals":{"aws:ResourceTag/open":"yes"}}`,
		"ec2:RunInstances " + region + `:snapshot/* {"StringEquals":{"ec2:Owner":"amazon"}}`,
	})))
	try := func(pool string, change func(*ec2.RunInstancesInput)) error {
		in := &ec2.RunInstancesInput{
			DryRun: aws.Bool(true), ImageId: imageBehind(t, standard).ImageId, InstanceType: "m5.large", MinCount: aws.Int32(1),
			MaxCount: aws.Int32(1), SubnetId: &subnet,
			TagSpecifications: []types.TagSpecification{
				{ResourceType: "instance", Tags: []types.Tag{{Key: aws.String("pool"), Value: &pool}}},
			},
		}
		if change != nil {
			change(in)
		}
		_, err := client.RunInstances(ctx, in)
		return err
	}
	want(t, "into a subnet without the tag", try("a", nil), "UnauthorizedOperation")
	need[*ec2.CreateTagsOutput](t)(root.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{subnet}, Tags: []types.Tag{{Key: aws.String("open"), Value: aws.String("yes")}},
	}))
	want(t, "into one with it", try("a", nil), "DryRunOperation")
	want(t, "with another tag", try("b", nil), "UnauthorizedOperation")
	want(t, "with a snapshot of the account", try("a", func(in *ec2.RunInstancesInput) {
		in.BlockDeviceMappings = []types.BlockDeviceMapping{
			{DeviceName: aws.String("/dev/sdf"), Ebs: &types.EbsBlockDevice{SnapshotId: aws.String("snap-1")}},
		}
	}), "UnauthorizedOperation")
	backup := *need[*ec2.RegisterImageOutput](t)(root.RegisterImage(ctx, &ec2.RegisterImageInput{Name: aws.String("backup")})).ImageId
	own := func(in *ec2.RunInstancesInput) { in.ImageId = &backup }
	want(t, "from an image of the account", try("a", own), "UnauthorizedOperation")
	need[*ec2.CreateTagsOutput](t)(root.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{backup}, Tags: []types.Tag{{Key: aws.String("for"), Value: aws.String("nodes")}},
	}))
	want(t, "from one with the tag", try("a", own), "DryRunOperation")
	want(t, "from an image that does not exist", try("a", func(in *ec2.RunInstancesInput) {
		in.ImageId = aws.String("ami-0123456789abcdef0")
	}), "UnauthorizedOperation")
	want(t, "for a network interface", try("a", func(in *ec2.RunInstancesInput) {
		in.SubnetId = nil
		in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: &subnet}}
	}), "DryRunOperation")
}

func TestInstanceTypesAreTrue(t *testing.T) {
	client := ec2.NewFromConfig(sandbox.Config())
	out := need[*ec2.DescribeInstanceTypesOutput](t)(client.DescribeInstanceTypes(context.Background(), &ec2.DescribeInstanceTypesInput{
		InstanceTypes: []types.InstanceType{"m5.large", "m7g.xlarge"}}))
	for _, i := range out.InstanceTypes {
		arch := i.ProcessorInfo.SupportedArchitectures[0]
		if i.InstanceType == "m5.large" && (*i.VCpuInfo.DefaultVCpus != 2 || *i.MemoryInfo.SizeInMiB != 8192 || arch != "x86_64") ||
			i.InstanceType == "m7g.xlarge" && (*i.VCpuInfo.DefaultVCpus != 4 || arch != "arm64") {
			t.Errorf("%s: %d vCPU, %d MiB, %s", i.InstanceType, *i.VCpuInfo.DefaultVCpus, *i.MemoryInfo.SizeInMiB, arch)
		}
	}
	if len(out.InstanceTypes) != 2 {
		t.Errorf("%d types, want 2", len(out.InstanceTypes))
	}
}

func TestImagesOfNodesAreOnesThatEC2Has(t *testing.T) {
	const (
		al2023       = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/"
		arm          = "amazon-eks-node-al2023-arm64-"
		bottlerocket = "/aws/service/bottlerocket/aws-k8s-1.35"
	)
	for parameter, named := range map[string]string{
		al2023 + "x86_64/standard/recommended":                                    "amazon-eks-node-al2023-x86_64-standard-1.35-v20260828",
		al2023 + "x86_64/neuron/recommended":                                      "amazon-eks-node-al2023-x86_64-neuron-1.35-v20260828",
		al2023 + "arm64/nvidia/" + arm + "nvidia-1.35-v20260801":                  arm + "nvidia-1.35-v20260801",
		al2023 + "arm64/standard/" + arm + "standard-1.35-v20260301":              "", // a release without arm64
		al2023 + "arm64/neuron/recommended":                                       "",
		strings.Replace(al2023, "1.35", "1.36", 1) + "arm64/standard/recommended": arm + "standard-1.36-v20260828",
		strings.Replace(al2023, "1.35", "1.37", 1) + "arm64/standard/recommended": "",
		bottlerocket + "/arm64/latest":                                            "bottlerocket-aws-k8s-1.35-aarch64-v1.44.0-0dfb3e3c",
		bottlerocket + "-nvidia/x86_64/1.43.0":                                    "bottlerocket-aws-k8s-1.35-nvidia-x86_64-v1.43.0-0dfb3e3c",
	} {
		if got := *imageBehind(t, parameter+"/image_id").Name; got != named {
			t.Errorf("%s: %q, want %q", parameter, got, named)
		}
	}
	client := ec2.NewFromConfig(sandbox.Config())
	found := need[*ec2.DescribeImagesOutput](t)(client.DescribeImages(context.Background(), &ec2.DescribeImagesInput{
		Owners:  []string{"amazon"},
		Filters: []types.Filter{{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-x86_64-standard-1.35-v*"}}},
	})).Images
	age := map[string]int{}
	for _, image := range found {
		created := need[time.Time](t)(time.Parse(time.RFC3339, *image.CreationDate))
		age[strings.TrimPrefix(*image.Name, "amazon-eks-node-al2023-x86_64-standard-1.35-")] = int(time.Since(created).Hours() / 24)
	}
	if want := map[string]int{"v20260301": 200, "v20260801": 30, "v20260828": 3, "v20260911": 0}; !maps.Equal(age, want) {
		t.Errorf("days since the releases: %v, want %v", age, want)
	}
}

// A release becomes what @latest of its family is, and no other family's.
func TestLatestMoves(t *testing.T) {
	const al2023, bottlerocket = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/standard/recommended/image_id",
		"/aws/service/bottlerocket/aws-k8s-1.35/arm64/latest/image_id"
	ask(t, http.MethodPost, "/_sandbox/latest?alias=al2023@v20260911", "")
	defer ask(t, http.MethodPost, "/_sandbox/latest?alias=al2023@v20260828", "")
	if got := *imageBehind(t, al2023).Name; !strings.HasSuffix(got, "v20260911") {
		t.Errorf("AL2023: %s", got)
	}
	if got := *imageBehind(t, bottlerocket).Name; !strings.Contains(got, "v1.44.0") {
		t.Errorf("Bottlerocket: %s", got)
	}
	if err := sandbox.RestartMiniStack(); err != nil {
		t.Fatal(err)
	}
	if got := *imageBehind(t, al2023).Name; !strings.HasSuffix(got, "v20260911") {
		t.Errorf("after a restart: %s", got)
	}
}

// standard is the public parameter of an image of Amazon.
const standard = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id"

// imageBehind returns the image that a public parameter has, without a name if there is no such parameter.
func imageBehind(t *testing.T, parameter string) types.Image {
	t.Helper()
	found := need[*ssm.GetParametersOutput](t)(ssm.NewFromConfig(sandbox.Config()).GetParameters(context.Background(),
		&ssm.GetParametersInput{Names: []string{parameter}})).Parameters
	if len(found) == 0 {
		return types.Image{Name: aws.String("")}
	}
	return need[*ec2.DescribeImagesOutput](t)(ec2.NewFromConfig(sandbox.Config()).DescribeImages(context.Background(),
		&ec2.DescribeImagesInput{ImageIds: []string{*found[0].Value}})).Images[0]
}

// Auto Scaling is served by moto, with its filters, and is authorized by the caller's policies like EC2.
func TestAutoScalingGroups(t *testing.T) {
	ctx, root := context.Background(), autoscaling.NewFromConfig(sandbox.Config())
	template := need[*ec2.CreateLaunchTemplateOutput](t)(ec2.NewFromConfig(sandbox.Config()).CreateLaunchTemplate(ctx,
		&ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String("scaled"), LaunchTemplateData: &types.RequestLaunchTemplateData{
				InstanceType: "m5.large",
			}})).LaunchTemplate.LaunchTemplateId
	for name, tag := range map[string]string{"spark": "enabled", "other": "disabled"} {
		need[*autoscaling.CreateAutoScalingGroupOutput](t)(root.CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: aws.Int32(4), DesiredCapacity: aws.Int32(0),
			AvailabilityZones: []string{"us-east-1a"},
			LaunchTemplate:    &scalingtypes.LaunchTemplateSpecification{LaunchTemplateId: template, Version: aws.String("1")},
			Tags:              []scalingtypes.Tag{{Key: &tag, Value: aws.String("true")}},
		}))
	}
	look := &autoscaling.DescribeAutoScalingGroupsInput{
		Filters: []scalingtypes.Filter{{Name: aws.String("tag-key"), Values: []string{"enabled"}}},
	}
	for action, wanted := range map[string]string{"autoscaling:DescribeAutoScalingGroups": "", "autoscaling:DescribeTags": "AccessDenied"} {
		client := autoscaling.NewFromConfig(as(t, "scaler-"+action[strings.Index(action, ":")+1:], policyOf([]string{action + " *"})))
		out, err := client.DescribeAutoScalingGroups(ctx, look)
		want(t, action, err, wanted)
		if wanted == "" &&
			(len(out.AutoScalingGroups) != 1 || *out.AutoScalingGroups[0].AutoScalingGroupName != "spark" ||
				*out.AutoScalingGroups[0].MaxSize != 4) {
			t.Errorf("found %+v", out.AutoScalingGroups)
		}
	}
}
