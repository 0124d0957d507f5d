package nodegroups

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
)

// A second group has nodes of its own as soon as EKS creates it. They are removed while EKS deletes the group, and the
// first group's nodes stay.
func TestGroupsComeAndGo(t *testing.T) {
	b := newBed(fakeEKS{"system": system(2)})
	b.reconcile(t)
	spot := system(3)
	spot.NodegroupName, spot.Status, spot.CapacityType = aws.String("spot"), ekstypes.NodegroupStatusCreating, ekstypes.CapacityTypesSpot
	b.eks["spot"] = spot
	count := func(nodes []corev1.Node) map[string]int {
		found := map[string]int{}
		for _, node := range nodes {
			found[node.Labels[groupLabel]+" "+node.Labels["eks.amazonaws.com/capacityType"]]++
		}
		return found
	}
	if found := count(b.reconcile(t)); found["system ON_DEMAND"] != 2 || found["spot SPOT"] != 3 {
		t.Errorf("nodes %v", found)
	}
	spot.Status = ekstypes.NodegroupStatusDeleting
	b.reconcile(t)
	if found := count(b.reconcile(t)); found["system ON_DEMAND"] != 2 || len(found) != 1 {
		t.Errorf("nodes %v", found)
	}
	delete(b.eks, "spot")
	b.writes()
	if b.reconcile(t); b.writes() != 0 {
		t.Error("a group that has gone leaves something to do")
	}
}
