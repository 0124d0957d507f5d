package chaos

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

func (w *World) queues(ctx context.Context, all *collection) error {
	client := sqs.NewFromConfig(w.aws)
	queues, err := client.ListQueues(ctx, &sqs.ListQueuesInput{QueueNamePrefix: aws.String(rack + "-")})
	if err != nil {
		return err
	}
	for _, queue := range queues.QueueUrls {
		is, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: &queue, AttributeNames: []sqstypes.QueueAttributeName{"All"},
		})
		if err != nil {
			return err
		}
		for name := range is.Attributes {
			if strings.HasSuffix(name, "Timestamp") || strings.HasPrefix(name, "ApproximateNumber") {
				delete(is.Attributes, name)
			}
		}
		tags, err := client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &queue})
		if err != nil {
			return err
		}
		if err := all.add([]any{is.Attributes, tags.Tags}, "SQS queue %s", queue[strings.LastIndex(queue, "/")+1:]); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) rules(ctx context.Context, all *collection) error {
	client := eventbridge.NewFromConfig(w.aws)
	rules, err := client.ListRules(ctx, &eventbridge.ListRulesInput{NamePrefix: aws.String(rack + "-")})
	if err != nil {
		return err
	}
	for _, rule := range rules.Rules {
		targets, err := client.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: rule.Name})
		if err != nil {
			return err
		}
		tags, err := client.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: rule.Arn})
		if err != nil {
			return err
		}
		if err := all.add([]any{rule.EventPattern, rule.State, rule.Description, targets.Targets, tags.Tags}, "rule %s",
			*rule.Name); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) nodegroups(ctx context.Context, all *collection) error {
	client := eks.NewFromConfig(w.aws)
	groups, err := client.ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String(cluster)})
	if err != nil {
		return err
	}
	for _, name := range groups.Nodegroups {
		out, err := client.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(cluster), NodegroupName: &name})
		if err != nil {
			return err
		}
		g := out.Nodegroup
		if err := all.add([]any{g.Status, g.ScalingConfig, g.Labels, g.Taints, g.Tags, g.CapacityType}, "node group %s", name); err != nil {
			return err
		}
	}
	return nil
}

// network reads the EC2 resources that carry Karpenter's tags.
func (w *World) network(ctx context.Context, all *collection) error {
	client := ec2.NewFromConfig(w.aws)
	tags, err := client.DescribeTags(ctx, &ec2.DescribeTagsInput{
		Filters: []ec2types.Filter{{Name: aws.String("key"), Values: []string{"karpenter.sh/discovery"}}},
	})
	if err != nil {
		return err
	}
	for _, t := range tags.Tags {
		if err := all.add(t.Value, "discovery tag of %s", *t.ResourceId); err != nil {
			return err
		}
	}
	on, err := w.on(ctx)
	if err != nil || on { // what a first node needed goes when Karpenter finds the time
		return err
	}
	instances, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{
		{Name: aws.String("tag-key"), Values: []string{"karpenter.sh/nodepool"}},
		{Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped"}},
	}})
	if err != nil {
		return err
	}
	for _, r := range instances.Reservations {
		for range r.Instances {
			if err := all.add("", "instance of Karpenter's"); err != nil {
				return err
			}
		}
	}
	templates, err := client.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		return err
	}
	for _, t := range templates.LaunchTemplates {
		if err := all.add("", "launch template %s", *t.LaunchTemplateName); err != nil {
			return err
		}
	}
	return nil
}

// parameters reads the rack's settings, outputs and status. A setting that is unset is the same as none.
func (w *World) parameters(ctx context.Context, all *collection) error {
	pages := ssm.NewGetParametersByPathPaginator(ssm.NewFromConfig(w.aws), &ssm.GetParametersByPathInput{
		Path: aws.String(strings.TrimSuffix(folder, "/")), Recursive: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, p := range page.Parameters {
			value := *p.Value
			if value == "unset" || *p.Name == folder+"change" {
				continue
			}
			if strings.HasSuffix(*p.Name, "/status") {
				var status struct{ State, Goal, Problems, Warnings, Failure, Running json.RawMessage }
				if err := json.Unmarshal([]byte(value), &status); err != nil {
					return err
				}
				if err := all.add(status, "status"); err != nil {
					return err
				}
				continue
			}
			if err := all.add(value, "parameter %s", *p.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// records reads the rack's permanent records (those of passes have a time to live), and whether its lease is held.
func (w *World) records(ctx context.Context, all *collection) error {
	client := dynamodb.NewFromConfig(w.aws)
	tables, err := client.ListTables(ctx, &dynamodb.ListTablesInput{})
	if err != nil {
		return err
	}
	for _, table := range tables.TableNames {
		found, err := client.Scan(ctx, &dynamodb.ScanInput{
			TableName: &table, FilterExpression: aws.String("pk IN (:rack, :plan)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":rack": &types.AttributeValueMemberS{Value: "rack#" + rack}, ":plan": &types.AttributeValueMemberS{Value: "plan#" + rack},
			},
		})
		if err != nil {
			return err
		}
		for _, item := range found.Items {
			if _, passing := item["ttl"]; passing {
				continue
			}
			name := item["sk"].(*types.AttributeValueMemberS).Value
			_, held := item["owner"]
			if err := all.add(map[string]bool{"held": held}, "record %s", name); err != nil {
				return err
			}
		}
	}
	return nil
}
