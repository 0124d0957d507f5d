"""EKS's and Bottlerocket's public AMI parameters, for the images in the file SANDBOX_IMAGES, which moto has too. Which
release @latest is can be set: POST /_sandbox/latest?alias=al2023@v20260911.
"""

import functools
import json
import os
import re

from patches import patch

from ministack.services import ssm

AL2023 = re.compile(r"/aws/service/eks/optimized-ami/(?P<version>[\d.]+)/amazon-linux-2023/(?P<arch>x86_64|arm64)/"
                    r"(?P<variant>standard|nvidia|neuron)/(recommended|(?P<name>amazon-eks-node-al2023-[^/]+))/image_id")
BOTTLEROCKET = re.compile(r"/aws/service/bottlerocket/aws-k8s-(?P<version>[\d.]+(-nvidia)?)/(?P<arch>x86_64|arm64)/"
                          r"(latest|(?P<release>[\d.]+))/image_id")
latest = {"al2023": "v20260828", "bottlerocket": "v1.44.0"}  # what @latest of each family is


@patch("ministack.services.ssm._public_parameter")
def public_parameter(original, name):
    names = (_al2023, AL2023), (_bottlerocket, BOTTLEROCKET)
    image = next((_published().get(of(match)) for of, pattern in names if (match := pattern.fullmatch(name))), None)
    if not image:
        return original(name)
    return {"Name": name, "Type": "String", "Value": image, "Version": 1,
            "LastModifiedDate": 1767225600, "ARN": f"arn:aws:ssm:{ssm.get_region()}::parameter{name}"}


@functools.cache
def _published():
    """The images' IDs by name."""
    with open(os.environ["SANDBOX_IMAGES"], encoding="utf-8") as file:
        return {image["name"]: image["ami_id"] for image in json.load(file)}


def _al2023(match):
    return match["name"] or f"amazon-eks-node-al2023-{match['arch']}-{match['variant']}-{match['version']}-{latest['al2023']}"


def _bottlerocket(match):
    release = f"v{match['release']}" if match["release"] else latest["bottlerocket"]
    machine = match["arch"].replace("arm64", "aarch64")
    return f"bottlerocket-aws-k8s-{match['version']}-{machine}-{release}-0dfb3e3c"


def publish(query):
    """Sets which release @latest of a family is."""
    family, release = query["alias"].split("@")
    latest[family] = release
    return {}
