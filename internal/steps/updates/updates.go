// Package updates says why EKS has not made a change that a step asked for. EKS accepts an update of a cluster or of a node group,
// makes it later, and may fail: the cluster or group is ACTIVE again, as it was, and only the update itself says why.
package updates

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// EKS lists the EKS calls of the package.
type EKS interface {
	DescribeUpdate(context.Context, *eks.DescribeUpdateInput, ...func(*eks.Options)) (*eks.DescribeUpdateOutput, error)
}

// Last is the last update that a step has begun of a cluster, or of one of its node groups. Its ID is noted beside what the step
// has written, so that a later call finds it.
type Last struct {
	EKS     EKS
	Writer  *resource.Writer
	Cluster string
	// Group is empty for an update of the cluster.
	Group string
}

func (l Last) note() string { return "update/" + l.Group }

// Began notes an update that EKS has accepted.
func (l Last) Began(update *types.Update) {
	if update != nil {
		l.Writer.Note(l.note(), aws.ToString(update.Id))
	}
}

// Begun reports whether an update is noted.
func (l Last) Begun() bool { return l.Writer.Noted(l.note()) != "" }

// Continues keeps the note of an update that is under way.
func (l Last) Continues() { l.Writer.Note(l.note(), l.Writer.Noted(l.note())) }

// Made forgets an update that EKS has made: what the caller asked for is there.
func (l Last) Made() { l.Writer.Note(l.note(), "") }

// Failed returns EKS's own words if the update has failed, and forgets it, so that the next pass may try again. The caller has seen
// that nothing is under way, and that what it asked for is not there. An update that EKS has made, or does not know, is forgotten
// too.
func (l Last) Failed(ctx context.Context) (words string, err error) {
	id := l.Writer.Noted(l.note())
	if id == "" {
		return "", nil
	}
	in := &eks.DescribeUpdateInput{Name: &l.Cluster, UpdateId: &id}
	if l.Group != "" {
		in.NodegroupName = &l.Group
	}
	out, err := l.EKS.DescribeUpdate(ctx, in)
	unknown := errors.As(err, new(*types.ResourceNotFoundException))
	if err != nil && !unknown {
		return "", fmt.Errorf("update %s: describe: %w", id, err)
	}
	if !unknown && out.Update.Status == types.UpdateStatusInProgress { // an answer of EKS may be older than the one before
		return "", nil
	}
	l.Writer.Note(l.note(), "")
	if unknown || out.Update.Status == types.UpdateStatusSuccessful {
		return "", nil
	}
	return fmt.Sprintf("%s: update %s ended as %s: %s", outcome.Unmade, id, out.Update.Status, reasons(out.Update.Errors)), nil
}

// reasons returns what EKS says of a failed update.
func reasons(details []types.ErrorDetail) string {
	var all []string
	for _, d := range details {
		reason := fmt.Sprintf("%s: %s", d.ErrorCode, aws.ToString(d.ErrorMessage))
		if len(d.ResourceIds) > 0 {
			reason += " (" + strings.Join(d.ResourceIds, ", ") + ")"
		}
		all = append(all, reason)
	}
	if len(all) == 0 {
		return "it gives no reason"
	}
	return strings.Join(all, "; ")
}
