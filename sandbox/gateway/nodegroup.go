package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
)

// launchTemplate is a header with the contents (JSON) of a new node group's launch template. moto has the template, and
// MiniStack checks whether the caller may launch from it, as EKS does.
const launchTemplate = "X-Sandbox-Launch-Template"

// launch has what policies can refer to in a launch from a template. Uses has the resources it uses, as kind/id, or as
// an ARN if the resource is not EC2's. Tagged has the kinds of resources that it tags.
type launch struct {
	ID     string   `json:"id"`
	Uses   []string `json:"uses"`
	Tagged []string `json:"tagged"`
}

// serveCreateNodegroup adds the group's launch template, if it has one, to the call to MiniStack.
func (g *gateway) serveCreateNodegroup(w http.ResponseWriter, req *http.Request) {
	body, err := buffer(req)
	if err != nil {
		http.Error(w, "gateway: read an eks call: "+err.Error(), http.StatusBadRequest)
		return
	}
	req.Header.Del(launchTemplate)
	var group struct {
		LaunchTemplate *struct{ ID, Name, Version *string }
	}
	if json.Unmarshal(body, &group) == nil && group.LaunchTemplate != nil { // EKS rejects a body that does not parse
		t := group.LaunchTemplate
		said, err := g.launch(req.Context(), &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateId: t.ID, LaunchTemplateName: t.Name, Versions: []string{aws.ToString(t.Version)},
		})
		if err != nil {
			http.Error(w, "gateway: authorize an eks call: "+err.Error(), http.StatusBadGateway)
			return
		}
		req.Header.Set(launchTemplate, said)
	}
	g.ministack.ServeHTTP(w, req)
}

func (g *gateway) launch(ctx context.Context, of *ec2.DescribeLaunchTemplateVersionsInput) (string, error) {
	if of.Versions[0] == "" {
		of.Versions[0] = "$Default"
	}
	found, err := g.networks.ec2.DescribeLaunchTemplateVersions(ctx, of)
	if errors.As(err, new(smithy.APIError)) || err == nil && len(found.LaunchTemplateVersions) == 0 {
		return "null", nil // the template or the version does not exist, so there is nothing to authorize
	}
	if err != nil {
		return "", fmt.Errorf("launch template: describe: %w", err)
	}
	version := found.LaunchTemplateVersions[0]
	said, data := launch{ID: aws.ToString(version.LaunchTemplateId), Uses: []string{}, Tagged: []string{}}, version.LaunchTemplateData
	for _, group := range data.SecurityGroupIds {
		said.Uses = append(said.Uses, "security-group/"+group)
	}
	if data.KeyName != nil {
		said.Uses = append(said.Uses, "key-pair/"+*data.KeyName)
	}
	if data.ImageId != nil {
		said.Uses = append(said.Uses, "image/"+*data.ImageId)
	}
	for _, device := range data.BlockDeviceMappings {
		if device.Ebs != nil && device.Ebs.SnapshotId != nil {
			said.Uses = append(said.Uses, "snapshot/"+*device.Ebs.SnapshotId)
		}
	}
	if p := data.Placement; p != nil && p.GroupName != nil {
		said.Uses = append(said.Uses, "placement-group/"+*p.GroupName)
	}
	if r := data.CapacityReservationSpecification; r != nil && r.CapacityReservationTarget != nil &&
		r.CapacityReservationTarget.CapacityReservationId != nil {
		said.Uses = append(said.Uses, "capacity-reservation/"+*r.CapacityReservationTarget.CapacityReservationId)
	}
	for _, l := range data.LicenseSpecifications {
		said.Uses = append(said.Uses, aws.ToString(l.LicenseConfigurationArn))
	}
	for _, spec := range data.TagSpecifications {
		said.Tagged = append(said.Tagged, string(spec.ResourceType))
	}
	text, err := json.Marshal(said)
	return string(text), err
}
