package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// soon is how long before its end a reservation is told to end.
const soon = 7 * 24 * time.Hour

// reservations returns the capacity reservations that pools name. It lists all of the account, because EC2 refuses a call that names an ID
// which does not exist. Where none is named, nothing is read.
func (o *Observer) reservations(ctx context.Context, config params.Config) (map[string]plan.Reservation, error) {
	named, _ := config.Reserved()
	if len(named) == 0 {
		return nil, nil
	}
	found := map[string]plan.Reservation{}
	pages := ec2.NewDescribeCapacityReservationsPaginator(o.EC2, &ec2.DescribeCapacityReservationsInput{})
	err := EachPage(ctx, pages, func(page *ec2.DescribeCapacityReservationsOutput) {
		for _, r := range page.CapacityReservations {
			if id := aws.ToString(r.CapacityReservationId); slices.Contains(named, id) {
				one := plan.Reservation{
					InstanceType: aws.ToString(r.InstanceType), Zone: aws.ToString(r.AvailabilityZone), State: string(r.State),
					Total: int(aws.ToInt32(r.TotalInstanceCount)), Free: int(aws.ToInt32(r.AvailableInstanceCount)),
				}
				if r.EndDate != nil && r.EndDate.Sub(o.Now()) < soon {
					one.Ends = r.EndDate.UTC().Format(time.RFC3339)
				}
				found[id] = one
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("capacity reservations: describe: %w", err)
	}
	return found, nil
}

// placementGroups returns the states of the placement groups that pools name, by ID or name. An account has 500 at most, in one answer.
func (o *Observer) placementGroups(ctx context.Context, config params.Config) (map[string]string, error) {
	_, named := config.Reserved()
	if len(named) == 0 {
		return nil, nil
	}
	out, err := o.EC2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{})
	if err != nil {
		return nil, fmt.Errorf("placement groups: describe: %w", err)
	}
	found := map[string]string{}
	for _, group := range out.PlacementGroups {
		for _, name := range []string{aws.ToString(group.GroupId), aws.ToString(group.GroupName)} {
			if slices.Contains(named, name) {
				found[name] = string(group.State)
			}
		}
	}
	return found, nil
}
