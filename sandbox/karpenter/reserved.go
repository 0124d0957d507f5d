package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// reservationLabel names the capacity reservation that Karpenter launched a NodeClaim into.
const reservationLabel = "karpenter.k8s.aws/capacity-reservation-id"

// DescribeInstances adds the capacity reservations that instances run in, as EC2 does. The simulation launches into a reservation and
// forgets it, and Karpenter would take the nodes for on-demand a minute later.
func (j judged) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
	options ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	out, err := j.Client.DescribeInstances(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	claims := &karpenter.NodeClaimList{}
	if err := j.cluster.List(ctx, claims, client.HasLabels{reservationLabel}); err != nil {
		return nil, fmt.Errorf("NodeClaims in capacity reservations: list: %w", err)
	}
	reserved := map[string]string{}
	for _, claim := range claims.Items {
		id := claim.Status.ProviderID
		reserved[id[strings.LastIndex(id, "/")+1:]] = claim.Labels[reservationLabel]
	}
	for _, launch := range out.Reservations {
		for i := range launch.Instances {
			if id := reserved[aws.ToString(launch.Instances[i].InstanceId)]; id != "" {
				launch.Instances[i].CapacityReservationId = &id
				launch.Instances[i].CapacityReservationSpecification = &types.CapacityReservationSpecificationResponse{
					CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
				}
			}
		}
	}
	return out, nil
}
