"""What EKS does with its caller's rights, beside the call itself (AUTH=true).

For a new node group the caller must be allowed to hand its role to EKS, to look at role, subnets and launch template, and to
launch instances as the template says; for a Pod Identity association, to hand on its role; for an access entry of nodes, to hand
their role to EC2 (EKS user guide, "Create access entries"). A caller who may not is refused, and told of the action that is
missing. EC2 is moto's: the gateway tells what a launch template says.
"""

import contextvars
import json

from ministack.core import iam_evaluator
from ministack.core.iam_actions import identity_denial_message
from ministack.core.responses import get_account_id, get_region
from ministack.core.router import extract_access_key_id
from ministack.services import eks

_caller = contextvars.ContextVar("sandbox_caller", default="")  # the access key
_template = contextvars.ContextVar("sandbox_launch_template", default=None)
_handle = _create_nodegroup = _create_association = _update_association = _create_entry = None


def install():
    global _handle, _create_nodegroup, _create_association, _update_association, _create_entry
    _handle, _create_nodegroup = eks._handle_request_sync, eks._create_nodegroup
    _create_association, _update_association = eks._create_pod_identity_association, eks._update_pod_identity_association
    _create_entry = eks._create_access_entry
    eks._handle_request_sync = handle
    eks._create_nodegroup = create_nodegroup
    eks._create_pod_identity_association = create_association
    eks._update_pod_identity_association = update_association
    eks._create_access_entry = create_entry


def handle(method, path, headers, body, query):
    _caller.set(extract_access_key_id(headers, query))
    _template.set(json.loads(headers.get("x-sandbox-launch-template") or "null"))
    return _handle(method, path, headers, body, query)


def create_nodegroup(cluster, body):
    role = body.get("nodeRole", "")
    asked = [("iam:PassRole", role, {"iam:PassedToService": "eks.amazonaws.com"}), ("iam:GetRole", role, {}),
             ("iam:ListAttachedRolePolicies", role, {}), ("ec2:DescribeSubnets", "*", {})]
    if body.get("tags"):
        tags = {f"aws:RequestTag/{key}": value for key, value in body["tags"].items()}
        name = f"arn:aws:eks:{get_region()}:{get_account_id()}:nodegroup/{cluster}/{body['nodegroupName']}/*"
        asked.append(("eks:TagResource", name, {**tags, "aws:TagKeys": list(body["tags"])}))
    if _template.get():
        asked += _launch(_template.get(), body.get("subnets", []))
    return _refusal(asked) or _create_nodegroup(cluster, body)


def create_entry(cluster, body):
    handed = [("iam:PassRole", body.get("principalArn", ""), {"iam:PassedToService": "ec2.amazonaws.com"})]
    return _refusal(handed if body.get("type") in ("EC2_LINUX", "EC2_WINDOWS") else []) or _create_entry(cluster, body)


def create_association(cluster, body):
    return _refusal(_handed_on(body)) or _create_association(cluster, body)


def update_association(cluster, association, body):
    return _refusal(_handed_on(body)) or _update_association(cluster, association, body)


def _handed_on(body):
    role = body.get("roleArn")
    return [("iam:PassRole", role, {"iam:PassedToService": "pods.eks.amazonaws.com"}), ("iam:GetRole", role, {})] if role else []


def _launch(template, subnets):
    """A launch from the template is judged on all that it makes and all that it uses."""
    ours, public = (f"arn:aws:ec2:{get_region()}:{account}:" for account in (get_account_id(), ""))
    made = [f"{ours}{kind}/*" for kind in ("instance", "volume", "network-interface")]
    used = [f"launch-template/{template['id']}", *(f"subnet/{s}" for s in subnets), *template["uses"]]
    if not any(one.startswith("image/") for one in used):
        used.append("image/*")  # EKS's own
    used = [one if one.startswith("arn:") else (public if one.startswith(("image/", "snapshot/")) else ours) + one for one in used]
    context = {"ec2:LaunchTemplate": f"{ours}launch-template/{template['id']}"}
    tagged = [("ec2:CreateTags", f"{ours}{kind}/*", {"ec2:CreateAction": "RunInstances"}) for kind in template["tagged"]]
    return [("ec2:DescribeLaunchTemplateVersions", "*", {}), *(("ec2:RunInstances", arn, context) for arn in made + used), *tagged]


def _refusal(asked):
    """EKS's answer to a caller who lacks one of the rights, or None."""
    for action, resource, context in asked if _caller.get() else []:
        denied = iam_evaluator.enforce(_caller.get(), action, action.split(":")[0], get_region(), resource, context)
        if denied:
            message = identity_denial_message(action, denied.principal_arn, resource, denied.decision == "Deny")
            return eks._error(403, "AccessDeniedException", message)
    return None
