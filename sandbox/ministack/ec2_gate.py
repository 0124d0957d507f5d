"""Authorizes the calls of EC2 and Auto Scaling. moto serves them, but it does not evaluate policies.

The gateway sends every such request here first. A request that reaches the handler below has passed authentication
and the caller's policies, so the handler only answers with a header. A launch, which Karpenter tries as a dry run,
is authorized against everything that it creates and uses.
"""

import json
import re
from urllib.parse import parse_qs

import lag
from patches import patch

from ministack.core import iam_actions, iam_evaluator
from ministack.core.responses import get_account_id, get_region
from ministack.core.router import extract_access_key_id

# The tags of the instances, images and subnets of a call that is being authorized, by ARN. The gateway sends them.
_tags = {}

# The prefix of an EC2 resource id gives its kind.
KINDS = {"vpc": "vpc", "subnet": "subnet", "sg": "security-group", "i": "instance", "vol": "volume",
         "lt": "launch-template", "ami": "image", "eni": "network-interface", "fleet": "fleet"}
LAUNCHES = ("RunInstances", "CreateFleet")


@patch("ministack.app.SERVICE_HANDLERS.ec2", "ministack.app.SERVICE_HANDLERS.autoscaling")
async def allowed(_original, _method, _path, headers, body, query):
    form = parse_qs(body.decode(), keep_blank_values=True)
    action = iam_actions._query_param(form, "Action")
    owners = json.loads(headers.get("x-sandbox-image-owners") or "{}")
    for asked in _launch(action, form, owners) if action in LAUNCHES else []:
        denied = iam_evaluator.enforce(extract_access_key_id(headers, query), asked[0], "ec2", get_region(), *asked[1:])
        if denied:
            message = iam_actions.identity_denial_message(asked[0], denied.principal_arn, asked[1], denied.decision == "Deny")
            body = f"<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>{message}</Message></Error></Errors></Response>"
            return 403, {"content-type": "text/xml"}, body.encode()
    return 200, {"x-sandbox-authorized": "true", **({"x-sandbox-lags": "true"} if lag.lagging() else {})}, b""


@patch("ministack.services.tagging._RESOURCE_TAG_COLLECTORS.ec2", new=True)
def collect(_original):
    return [(arn, [{"Key": key, "Value": value} for key, value in tags.items()]) for arn, tags in _tags.items()]


@patch("ministack.services.tagging._RESOURCE_TAG_COLLECTORS.autoscaling", new=True)
def collect_groups(_original):
    return collect()


@patch("ministack.core.iam_actions.extract_resource_arn")
def extract_resource_arn(original, service, method, path, headers, body, query, region, account):
    """Describe calls have no resource. CreateTags and DeleteTags name theirs in ResourceId.N, TerminateInstances in
    InstanceId.N. TerminateInstanceInAutoScalingGroup is about the group.
    """
    if service == "autoscaling":
        for name, tags in json.loads(headers.get("x-sandbox-resource-tags") or "{}").items():
            arn = f"arn:aws:autoscaling:{region}:{account}:{name}"
            _tags[arn] = tags
            return arn
    if service == "ec2":
        action = iam_actions._query_param(query, "Action")
        if action.startswith("Describe"):
            return "*"
        tags = json.loads(headers.get("x-sandbox-resource-tags") or "{}")
        _tags.update((_arn(name, region, account), its) for name, its in tags.items())
        name = iam_actions._query_param(query, "ResourceId.1") or iam_actions._query_param(query, "InstanceId.1")
        match = re.match(r"([a-z]+)-", name)
        if match and match.group(1) in KINDS:
            return f"arn:aws:ec2:{region}:{account}:{KINDS[match.group(1)]}/{name}"
        if action in LAUNCHES:
            return f"arn:aws:ec2:{region}:{account}:instance/*"  # allowed() checks the other resources
    return original(service, method, path, headers, body, query, region, account)


def _arn(name, region, account):
    """The ARN of a resource by its id. That of an image has no account."""
    kind = KINDS[name.split("-")[0]]
    return f"arn:aws:ec2:{region}:{'' if kind == 'image' else account}:{kind}/{name}"


@patch("ministack.core.iam_actions.verified_access_resource_arns")
def further_resource_arns(original, query, region, account):
    """Each instance of TerminateInstances is authorized separately. MiniStack has such a list for another kind of
    call.
    """
    if iam_actions._query_param(query, "Action") != "TerminateInstances":
        return original(query, region, account)
    names = sorted(key for key in query if key.startswith("InstanceId."))
    return [f"arn:aws:ec2:{region}:{account}:instance/{iam_actions._query_param(query, key)}" for key in names]


def _launch(action, query, owners):
    """What a launch is authorized against: the resources it creates and tags, the images, the subnets, and the named
    snapshots.

    Launch templates are simulated inside Karpenter, so a launch that names no image is judged as one from an image of
    Amazon. All snapshots here belong to the account.
    """
    ours = f"arn:aws:ec2:{get_region()}:{get_account_id()}:"
    for kind in _tag_specifications(query):
        context = request_tags(query, kind)
        yield f"ec2:{action}", f"{ours}{kind}/*", context
        yield "ec2:CreateTags", f"{ours}{kind}/*", {**context, "ec2:CreateAction": action}
    images = sorted({iam_actions._query_param(query, key) for key in query if key.split(".")[-1] == "ImageId"})
    for name in images or ["*"]:
        owner = owners.get(name, "nobody") if images else "amazon"
        yield f"ec2:{action}", f"arn:aws:ec2:{get_region()}::image/{name}", {"ec2:Owner": owner}
    for name in sorted({iam_actions._query_param(query, key) for key in query if key.split(".")[-1] == "SubnetId"}):
        yield f"ec2:{action}", f"{ours}subnet/{name}", {}
    for name in sorted({iam_actions._query_param(query, key) for key in query if key.endswith(".SnapshotId")}):
        yield f"ec2:{action}", f"arn:aws:ec2:{get_region()}::snapshot/{name}", {"ec2:Owner": get_account_id()}


def request_tags(query, kind="instance"):
    """The condition keys for the tags that a launch requests."""
    tags = _tag_specifications(query).get(kind, {})
    return {**{f"aws:RequestTag/{key}": value for key, value in tags.items()}, **({"aws:TagKeys": list(tags)} if tags else {})}


def _tag_specifications(query):
    """The tags that a call requests, by kind of resource."""
    found = {}
    for key in query:
        match = re.match(r"TagSpecification\.(\d+)\.Tag\.(\d+)\.Key$", key)
        if match:
            its, tag = f"TagSpecification.{match.group(1)}", f"TagSpecification.{match.group(1)}.Tag.{match.group(2)}"
            kind = iam_actions._query_param(query, f"{its}.ResourceType")
            found.setdefault(kind, {})[iam_actions._query_param(query, f"{tag}.Key")] = iam_actions._query_param(query, f"{tag}.Value")
    return found
