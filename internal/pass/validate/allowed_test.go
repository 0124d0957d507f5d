package validate

import (
	"fmt"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// What a parameter names is compared with what the deployment allows before anything is done with it, even while
// Karpenter is off and while it is turned off.
func TestWhatTheDeploymentDoesNotAllow(t *testing.T) {
	const image, deployments = "karpenter_image_repository", "system_deployments"
	const undigested = "karpenter_version=1.14.3" // its image has no digest in the catalogue
	for written, parameter := range map[string]string{
		image + "=ghcr.io/somebody/controller":                                          image,
		image + "=123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter/controller": image,
		deployments + "=kube-system/metrics-server,shop/web":                            deployments,
		deployments + "=kube-system/karpenter":                                          deployments,
		deployments + "=demo-2-system/api":                                              deployments, // rack demo-2
		image + "=public.ecr.aws/karpenter/controller":                                  "",
		deployments + "=kube-system/coredns,demo-system/router,demo-system/y":           "",
	} {
		s := begin(t, auth, on, undigested, written)
		if parameter == "" {
			s.wants(s.pass(false), outcome.PassPlanned, true, enable)
			continue
		}
		for _, more := range []string{"", "karpenter_enabled=false"} {
			s.write(more)
			s.wants(s.pass(false), outcome.PassRejected, true, "")
			if found := s.problems(); len(found) != 1 || found[0].Parameter != parameter {
				t.Errorf("%s: %v", written, found)
			}
		}
	}
	t.Log("turning off takes no other image in, either, by which a controller that is down would be brought up")
	s := begin(t, auth, on, undigested)
	s.pass(false)
	s.write(off, image+"=ghcr.io/somebody/controller")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.write(on)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if p, err := s.store.Plan(t.Context(), "demo"); err != nil || strings.Contains(fmt.Sprint(p.Controller.Release.Values), "repository") {
		t.Errorf("%v: %+v", err, p.Controller)
	}
}

// If the deployment forbids a value that a rack already uses, the value stays in force with a warning until it is
// written again or Karpenter has been off. The rack is still repaired, and its other parameters take effect.
func TestWhatIsInForceStays(t *testing.T) {
	s := begin(t, auth, on, "karpenter_version=1.14.3", "karpenter_image_repository=ghcr.io/somebody/controller",
		"system_deployments=ingress/nginx,kube-system/coredns")
	s.validate.Observer.Deployment = plan.Deployment{
		RequireClusterTag: true, ImageRepositories: []string{"ghcr.io/somebody/*"}, SystemNamespaces: []string{"ingress"},
	}
	s.wants(s.pass(false), outcome.PassPlanned, true, enable)
	s.validate.Observer.Deployment = plan.Deployment{RequireClusterTag: true}
	s.write("karpenter_cpu_limit=7")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
	run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests))
	if err != nil || len(run.Warnings) != 2 || run.Warnings[0].Parameter != "karpenter_image_repository" ||
		run.Warnings[1].Parameter != "system_deployments" {
		t.Errorf("%v: %v", err, run.Warnings)
	}
	s.write("system_deployments=ingress/nginx,ingress/other,kube-system/coredns")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if found := s.problems(); len(found) != 1 || !strings.Contains(found[0].Message, "has ingress/other;") {
		t.Errorf("%v", found)
	}
	s.write("system_deployments=ingress/nginx", off)
	if got := s.pass(false); got.Outcome != outcome.PassPlanned {
		t.Errorf("turning off: %+v, %v", got, s.problems())
	}
	records := s.records()
	records.WasOn = false
	s.must(s.store.SaveRecords(t.Context(), "demo", records))
	s.write(on)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if found := s.problems(); len(found) != 2 {
		t.Errorf("%v", found)
	}
}

// A writer of the rack's parameters selects a backup of the account's database server, by its ID, its name or its tags,
// to start it with user data of their own. Nothing is planned, and the last good plan stays in force.
func TestABackupIsNoImageForNodes(t *testing.T) {
	const config, backup = "karpenter_config=", "ami-0bbbbbbbbbbbbbbb1"
	pool := func(term string) string {
		return config + `{"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[` + term + `],"userData":"#!/bin/sh\nid"}}`
	}
	s := begin(t, auth, on)
	s.cloud.EC2.Images = []ec2types.Image{{ImageId: new(backup), OwnerId: new(awsfake.Account),
		Tags: []ec2types.Tag{{Key: new("Name"), Value: new("db-backup")}}}}
	s.wants(s.pass(false), outcome.PassPlanned, true, enable)
	for _, term := range []string{
		`{"id":"` + backup + `"}`, `{"name":"db-backup"}`, `{"name":"db-backup","owner":"self"}`, `{"tags":{"Name":"db-backup"}}`,
		`{"owner":"` + awsfake.Account + `","tags":{"Name":"db-backup"}}`,
	} {
		s.write(pool(term))
		s.wants(s.pass(false), outcome.PassRejected, true, "")
		found := s.problems()
		if len(found) != 1 || found[0].Parameter != "karpenter_config" || !strings.HasPrefix(found[0].Path, "ec2NodeClass.amiSelectorTerms[0]") {
			t.Errorf("%s: %v", term, found)
		}
		if p, err := s.store.Plan(t.Context(), "demo"); err != nil || strings.Contains(fmt.Sprint(p.NodePools), "db-backup") ||
			strings.Contains(fmt.Sprint(p.NodePools), backup) {
			t.Errorf("%s: %v, %v", term, p.NodePools, err)
		}
	}
	t.Log("once somebody who may tag images has tagged it")
	s.cloud.EC2.Images[0].Tags = []ec2types.Tag{{Key: new("sawhorse.dev/nodes"), Value: new("true")}}
	s.write(pool(`{"id":"` + backup + `"}`))
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
	t.Log("and if the tag is taken away, the rack's other parameters go on")
	s.cloud.EC2.Images[0].Tags = nil
	s.write("karpenter_cpu_limit=7")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
}
