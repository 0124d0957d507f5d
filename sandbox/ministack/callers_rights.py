"""The permissions that EKS checks in addition to the permission for the call itself (AUTH=true).

To create a node group, the caller must be allowed to pass its role to EKS, to read the role, the subnets and the
launch template, and to launch instances from the template. To create a Pod Identity association, it must be allowed
to pass its role. To create an access entry for nodes, it must be allowed to pass their role to EC2 (EKS user guide,
"Create access entries"). To create any of them with tags, it must be allowed to tag it (Service Authorization Reference:
eks:TagResource is an action of these operations). Otherwise EKS rejects the call and names the missing action. EC2 is served by moto, so the
gateway sends the contents of the launch template.
"""

import contextvars
import json

from patches import patch

from ministack.core import iam_evaluator
from ministack.core.iam_actions import identity_denial_message
from ministack.core.responses import get_account_id, get_region
from ministack.core.router import extract_access_key_id
from ministack.services import eks

_caller = contextvars.ContextVar("sandbox_caller", default="")  # the access key
_template = contextvars.ContextVar("sandbox_launch_template", default=None)

@patch("ministack.services.eks._handle_request_sync")
def handle(original, method, path, headers, body, query):
    _caller.set(extract_access_key_id(headers, query))
    _template.set(json.loads(headers.get("x-sandbox-launch-template") or "null"))
    return original(method, path, headers, body, query)


@patch("ministack.services.eks._create_nodegroup")
def create_nodegroup(original, cluster, body):
    role = body.get("nodeRole", "")
    asked = [("iam:PassRole", role, {"iam:PassedToService": "eks.amazonaws.com"}), ("iam:GetRole", role, {}),
             ("iam:ListAttachedRolePolicies", role, {}), ("ec2:DescribeSubnets", "*", {})]
    asked += _tagging(f"nodegroup/{cluster}/{body['nodegroupName']}/*", body)
    if _template.get():
        asked += _launch(_template.get(), body.get("subnets", []))
    return _refusal(asked) or original(cluster, body)


@patch("ministack.services.eks._create_access_entry")
def create_entry(original, cluster, body):
    handed = [("iam:PassRole", body.get("principalArn", ""), {"iam:PassedToService": "ec2.amazonaws.com"})]
    kind, _, name = body.get("principalArn", "").rpartition(":")[2].partition("/")
    tagging = _tagging(f"access-entry/{cluster}/{kind}/{get_account_id()}/{name.rpartition('/')[2]}/*", body)
    return _refusal((handed if body.get("type") in ("EC2_LINUX", "EC2_WINDOWS") else []) + tagging) or original(cluster, body)


@patch("ministack.services.eks._create_pod_identity_association")
def create_association(original, cluster, body):
    return _refusal(_handed_on(body) + _tagging(f"podidentityassociation/{cluster}/*", body)) or original(cluster, body)


@patch("ministack.services.eks._update_pod_identity_association")
def update_association(original, cluster, association, body):
    return _refusal(_handed_on(body)) or original(cluster, association, body)


def _tagging(resource, body):
    tags = body.get("tags") or {}
    context = {**{f"aws:RequestTag/{key}": value for key, value in tags.items()}, "aws:TagKeys": list(tags)}
    return [("eks:TagResource", f"arn:aws:eks:{get_region()}:{get_account_id()}:{resource}", context)] if tags else []


def _handed_on(body):
    role = body.get("roleArn")
    return [("iam:PassRole", role, {"iam:PassedToService": "pods.eks.amazonaws.com"}), ("iam:GetRole", role, {})] if role else []


def _launch(template, subnets):
    """A launch from the template is authorized against everything that it creates and uses."""
    ours, public = (f"arn:aws:ec2:{get_region()}:{account}:" for account in (get_account_id(), ""))
    made = [f"{ours}{kind}/*" for kind in ("instance", "volume", "network-interface")]
    used = [f"launch-template/{template['id']}", *(f"subnet/{s}" for s in subnets), *template["uses"]]
    if not any(one.startswith("image/") for one in used):
        used.append("image/*")  # the image that EKS chooses
    used = [one if one.startswith("arn:") else (public if one.startswith(("image/", "snapshot/")) else ours) + one for one in used]
    context = {"ec2:LaunchTemplate": f"{ours}launch-template/{template['id']}"}
    tagged = [("ec2:CreateTags", f"{ours}{kind}/*", {"ec2:CreateAction": "RunInstances"}) for kind in template["tagged"]]
    return [("ec2:DescribeLaunchTemplateVersions", "*", {}), *(("ec2:RunInstances", arn, context) for arn in made + used), *tagged]


def _refusal(asked):
    """EKS's answer to a caller that lacks one of the permissions, or None."""
    for action, resource, context in asked if _caller.get() else []:
        denied = iam_evaluator.enforce(_caller.get(), action, action.split(":")[0], get_region(), resource, context)
        if denied:
            message = identity_denial_message(action, denied.principal_arn, resource, denied.decision == "Deny")
            return eks._error(403, "AccessDeniedException", message)
    return None
