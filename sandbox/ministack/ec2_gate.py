"""EC2 and Auto Scaling are moto's, but moto knows no policies: MiniStack authorizes each of their calls before moto gets it.

The gateway sends every such request here first. What reaches the handler below has passed
authentication and the caller's policies, so it answers with a mark and nothing else.
"""

import json
import re

import lag

from ministack import app
from ministack.core import iam_actions
from ministack.services import tagging

_extract = None
_others = iam_actions.verified_access_resource_arns
# The tags of the instances of a call that is being authorized, by their ARNs: the gateway tells them.
_tags = {}

# EC2 resource ids say what they are.
KINDS = {"vpc": "vpc", "subnet": "subnet", "sg": "security-group", "i": "instance", "vol": "volume",
         "lt": "launch-template", "ami": "image", "eni": "network-interface", "fleet": "fleet"}


def install():
    global _extract
    _extract = iam_actions.extract_resource_arn
    iam_actions.extract_resource_arn = extract_resource_arn
    iam_actions.verified_access_resource_arns = further_resource_arns
    app.SERVICE_HANDLERS["ec2"] = allowed
    app.SERVICE_HANDLERS["autoscaling"] = allowed
    tagging._RESOURCE_TAG_COLLECTORS["ec2"] = collect


async def allowed(_method, _path, _headers, _body, _query):
    return 200, {"x-sandbox-authorized": "true", **({"x-sandbox-lags": "true"} if lag.lagging() else {})}, b""


def collect():
    return [(arn, [{"Key": key, "Value": value} for key, value in tags.items()]) for arn, tags in _tags.items()]


def extract_resource_arn(service, method, path, headers, body, query, region, account):
    """Describe calls have no resource; CreateTags and DeleteTags name theirs in ResourceId.N, TerminateInstances in InstanceId.N."""
    if service == "ec2":
        action = iam_actions._query_param(query, "Action")
        if action.startswith("Describe"):
            return "*"
        name = iam_actions._query_param(query, "ResourceId.1") or iam_actions._query_param(query, "InstanceId.1")
        match = re.match(r"([a-z]+)-", name)
        if match and match.group(1) in KINDS:
            tags = json.loads(headers.get("x-sandbox-resource-tags") or "{}")
            _tags.update((f"arn:aws:ec2:{region}:{account}:instance/{instance}", its) for instance, its in tags.items())
            return f"arn:aws:ec2:{region}:{account}:{KINDS[match.group(1)]}/{name}"
    return _extract(service, method, path, headers, body, query, region, account)


def further_resource_arns(query, region, account):
    """The instances of TerminateInstances are judged one by one; MiniStack has such a list for another kind of call."""
    if iam_actions._query_param(query, "Action") != "TerminateInstances":
        return _others(query, region, account)
    names = sorted(key for key in query if key.startswith("InstanceId."))
    return [f"arn:aws:ec2:{region}:{account}:instance/{iam_actions._query_param(query, key)}" for key in names]
