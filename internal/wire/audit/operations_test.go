package audit

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/steps/access"
	"github.com/sawhorse-io/sawhorse/internal/steps/capacity"
	"github.com/sawhorse-io/sawhorse/internal/steps/infrastructure"
	"github.com/sawhorse-io/sawhorse/internal/steps/network"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodegroups"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodepools"
	"github.com/sawhorse-io/sawhorse/internal/steps/queue"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// writing are the verbs of the operations with which the steps write.
var writing = []string{"Associate", "Attach", "Create", "Delete", "Detach", "Put", "Remove", "Set", "Tag", "Terminate", "Update"}

// A new operation of a step is a read or a write by its verb. A read with another verb would make its step due for ever.
func TestEveryOperationOfTheStepsIsKnown(t *testing.T) {
	reads, writes := 0, 0
	for _, of := range []reflect.Type{
		reflect.TypeFor[access.EKS](), reflect.TypeFor[eks.ListAssociatedAccessPoliciesAPIClient](),
		reflect.TypeFor[autoscaling.DescribeAutoScalingGroupsAPIClient](),
		reflect.TypeFor[infrastructure.EKS](), reflect.TypeFor[infrastructure.IAM](), reflect.TypeFor[network.EC2](),
		reflect.TypeFor[nodegroups.EKS](), reflect.TypeFor[nodegroups.AutoScaling](),
		reflect.TypeFor[nodepools.EC2](), reflect.TypeFor[queue.SQS](), reflect.TypeFor[queue.Rules](), reflect.TypeFor[capacity.EKS](),
	} {
		for i := range of.NumMethod() {
			operation := of.Method(i).Name
			isWrite := slices.ContainsFunc(writing, func(verb string) bool { return strings.HasPrefix(operation, verb) })
			switch isRead := readonly.Reads(operation); {
			case isRead == isWrite:
				t.Errorf("%s.%s: neither a read nor a write by its verb", of, operation)
			case isRead:
				reads++
			default:
				writes++
			}
		}
	}
	table := reflect.TypeFor[store.Table]()
	var refused []string
	for i := range table.NumMethod() {
		if operation := table.Method(i).Name; !readonly.Reads(operation) {
			refused = append(refused, operation)
		}
	}
	if want := []string{"DeleteItem", "PutItem", "UpdateItem"}; !slices.Equal(refused, want) {
		t.Errorf("refused of the table: %v, want %v", refused, want)
	}
	if reads < 15 || writes < 30 {
		t.Errorf("%d reads and %d writes: the test has lost the steps", reads, writes)
	}
}
