package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// Instances are the instances of the EKS cluster's node groups. moto knows none of them.
type Instances interface {
	// Group returns the node group of an instance, "" if there is none, and whether the instance is ending.
	Group(ctx context.Context, instance string) (group string, ending bool, err error)
	// End has an instance end once its group is one node smaller.
	End(ctx context.Context, instance string) error
}

// The calls of Auto Scaling about single instances.
const describeInstances, terminateInstance = "DescribeAutoScalingInstances", "TerminateInstanceInAutoScalingGroup"

// serveInstances answers a call about one instance.
func (g *gateway) serveInstances(w http.ResponseWriter, req *http.Request, action string, body []byte) {
	result, err := g.instances(req.Context(), action, body)
	if err != nil {
		fault.Deny(w, req, "autoscaling", http.StatusBadRequest, "ValidationError", err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, "<%[1]sResponse xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\"><%[1]sResult>%[2]s</%[1]sResult>"+
		"</%[1]sResponse>", action, result)
}

func (g *gateway) instances(ctx context.Context, action string, body []byte) (string, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", err
	}
	instance := form.Get("InstanceId") + form.Get("InstanceIds.member.1")
	group, ending, err := g.cfg.Instances.Group(ctx, instance)
	if err != nil {
		return "", err
	}
	switch {
	case action == describeInstances && group == "":
		return "<AutoScalingInstances/>", nil
	case action == describeInstances:
		state := "InService"
		if ending {
			state = "Terminating:Wait"
		}
		return fmt.Sprintf("<AutoScalingInstances><member><InstanceId>%s</InstanceId><AutoScalingGroupName>eks-%s</AutoScalingGroupName>"+
			"<LifecycleState>%s</LifecycleState></member></AutoScalingInstances>", instance, group, state), nil
	case group == "":
		return "", fmt.Errorf("no managed instance found for instance ID: %s", instance)
	}
	if err := g.cfg.Instances.End(ctx, instance); err != nil {
		return "", err
	}
	return "<Activity/>", g.shrink(ctx, group)
}

// shrink takes one node from the desired size of a node group, as Auto Scaling does, which EKS then shows.
func (g *gateway) shrink(ctx context.Context, group string) error {
	var answer struct{ Refused string }
	err := ask.JSON(ctx, http.MethodPost, g.cfg.MiniStack.JoinPath("/_sandbox/shrink").String(), map[string]string{"group": group}, &answer)
	if err == nil && answer.Refused != "" {
		err = errors.New(answer.Refused)
	}
	return err
}

// tagsOfGroup returns the tags of the Auto Scaling group of an instance as JSON, by the end of the group's ARN.
func (g *gateway) tagsOfGroup(ctx context.Context, instance string) (string, error) {
	group, _, err := g.cfg.Instances.Group(ctx, instance)
	if err != nil || group == "" {
		return "{}", err
	}
	text, err := json.Marshal(map[string]map[string]string{
		"autoScalingGroup:00000000-0000-0000-0000-000000000000:autoScalingGroupName/eks-" + group: {"eks:nodegroup-name": group}})
	return string(text), err
}
