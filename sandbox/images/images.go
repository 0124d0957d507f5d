// Package images is the AMIs for nodes that Amazon has published in a sandbox's account. moto has them as EC2's images, and MiniStack's
// public parameters point to them.
package images

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// releases are the releases of AL2023 and Bottlerocket. How long they have been out is counted from the sandbox's start, and their names
// stay the same, so that scripts and recipes can write them. SSM's @latest is first the last but one (ministack/images.py).
var releases = []struct {
	al2023, bottlerocket string
	days                 int
	arm                  bool
	kubernetes           []string
}{
	{"v20260301", "v1.42.0", 200, false, []string{"1.35"}},
	{"v20260801", "v1.43.0", 30, true, []string{"1.35"}},
	{"v20260828", "v1.44.0", 3, true, []string{"1.35", "1.36"}},
	{"v20260911", "v1.45.0", 0, true, []string{"1.35", "1.36"}},
}

// image is an AMI as moto reads it.
type image struct {
	ID           string `json:"ami_id"`
	Name         string `json:"name"`
	Owner        string `json:"owner_id"`
	Architecture string `json:"architecture"`
	Created      string `json:"creation_date"`
	Public       bool   `json:"public"`
	Root         string `json:"root_device_name"`
	RootType     string `json:"root_device_type"`
}

// Write writes the images to a file for moto (MOTO_AMIS_PATH) and MiniStack (SANDBOX_IMAGES), as they are at a time.
func Write(path string, now time.Time) error {
	text, err := json.Marshal(published(now))
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	return nil
}

// published returns all images. There is none of Neuron for arm64, as in AWS, and Bottlerocket's standard one runs Neuron.
func published(now time.Time) (all []image) {
	const eks, bottlerocket = "602401143452", "092701018921" // the owners
	for _, release := range releases {
		created := now.Add(-time.Duration(release.days) * 24 * time.Hour)
		for _, kubernetes := range release.kubernetes {
			for _, kind := range []string{"x86_64 standard", "x86_64 nvidia", "x86_64 neuron", "arm64 standard", "arm64 nvidia"} {
				arch, variant, _ := strings.Cut(kind, " ")
				if arch == "arm64" && !release.arm {
					continue
				}
				all = append(all, newImage(eks, arch, created, "amazon-eks-node-al2023-%s-%s-%s-%s", arch, variant, kubernetes, release.al2023))
				if variant == "neuron" {
					continue
				}
				flavour := strings.TrimPrefix("-"+variant, "-standard")
				machine := strings.Replace(arch, "arm64", "aarch64", 1)
				all = append(all, newImage(bottlerocket, arch, created, "bottlerocket-aws-k8s-%s%s-%s-%s-0dfb3e3c",
					kubernetes, flavour, machine, release.bottlerocket))
			}
		}
	}
	return all
}

// newImage returns an image whose ID follows from its name.
func newImage(owner, arch string, created time.Time, name string, parts ...any) image {
	name = fmt.Sprintf(name, parts...)
	return image{
		ID: fmt.Sprintf("ami-%x", sha256.Sum256([]byte(name)))[:21], Name: name, Owner: owner, Architecture: arch,
		Created: created.UTC().Format("2006-01-02T15:04:05.000Z"), Public: true, Root: "/dev/xvda", RootType: "ebs",
	}
}
