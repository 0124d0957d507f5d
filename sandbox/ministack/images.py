"""EKS's and Bottlerocket's public AMI parameters for every Kubernetes version and release. They point to images
that moto has, of different kernels: Karpenter tells variants by their IDs. One release has no image for arm64."""

import re

from patches import patch

from ministack.services import ssm

IMAGES = {
    "standard": {"x86_64": "ami-0d27e0fb3bac4d724", "arm64": "ami-065b1b834d2a83a7a"},
    "nvidia": {"x86_64": "ami-0ac48d91c7d16772c", "arm64": "ami-08a311a6aaa3cd94a"},
    "neuron": {"x86_64": "ami-03c3da4cfa8e8943a"},
}
AL2023 = (r"/aws/service/eks/optimized-ami/([\d.]+)/amazon-linux-2023/(?P<arch>x86_64|arm64)/(?P<variant>standard|nvidia|neuron)/"
          r"(recommended|amazon-eks-node-al2023-(?P=arch)-(?P=variant)-\1-(?P<release>v\d{8}))/image_id")
BOTTLEROCKET = r"/aws/service/bottlerocket/aws-k8s-[\d.]+(-(?P<variant>nvidia))?/(?P<arch>x86_64|arm64)/(?P<release>latest|[\d.]+)/image_id"
WITHOUT_ARM = "v20260301"

@patch("ministack.services.ssm._public_parameter")
def public_parameter(original, name):
    match = re.fullmatch(AL2023, name) or re.fullmatch(BOTTLEROCKET, name)
    if not match:
        return original(name)
    arch, variant = match["arch"], match["variant"] or "standard"
    if arch == "arm64" and (variant == "neuron" or match["release"] == WITHOUT_ARM):
        return None
    return {"Name": name, "Type": "String", "Value": IMAGES[variant][arch], "Version": 1,
            "LastModifiedDate": 1767225600, "ARN": f"arn:aws:ssm:{ssm.get_region()}::parameter{name}"}
