"""EKS's public AMI parameters for every Kubernetes version. They point to images that moto has."""

import re

from patches import patch

from ministack.services import ssm

IMAGES = {"x86_64": "ami-0d27e0fb3bac4d724", "arm64": "ami-065b1b834d2a83a7a"}
NAME = r"/aws/service/eks/optimized-ami/[\d.]+/amazon-linux-2023/(x86_64|arm64)/standard/recommended/image_id"

@patch("ministack.services.ssm._public_parameter")
def public_parameter(original, name):
    match = re.fullmatch(NAME, name)
    if not match:
        return original(name)
    return {"Name": name, "Type": "String", "Value": IMAGES[match.group(1)], "Version": 1,
            "LastModifiedDate": 1767225600, "ARN": f"arn:aws:ssm:{ssm.get_region()}::parameter{name}"}
