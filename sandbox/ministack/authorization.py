"""The resource ARNs that AWS authorizes against, where MiniStack uses another (AUTH=true)."""

import contextvars
import json
import re
from urllib.parse import unquote

import role_replicas
from patches import patch

from ministack.core import iam_actions
from ministack.services import eks, iam

entry = contextvars.ContextVar("sandbox_access_entry", default=None)  # cluster and principal of the access entry that the call is about


@patch("ministack.services.tagging._RESOURCE_TAG_COLLECTORS.iam")
def with_profiles(original):
    """Makes aws:ResourceTag work for instance profiles, as it does for users and roles."""
    yield from original()
    for profile in iam._instance_profiles.values():
        yield profile["Arn"], profile["Tags"]


@patch("ministack.services.tagging._RESOURCE_TAG_COLLECTORS.eks", new=True)
def eks_tags(_original):
    """Makes aws:ResourceTag work for clusters and their parts."""
    for arn, tags in eks._tags.items():
        yield arn, [{"Key": key, "Value": value} for key, value in tags.items()]


@patch("ministack.core.iam_actions.extract_resource_arn")  # the app imports the function at each request
def extract_resource_arn(original, service, method, path, headers, body, query, region, account):
    arn = original(service, method, path, headers, body, query, region, account)
    if service == "ssm" and arn == "*":
        arn = _parameters(body, region, account) or arn
    if service == "ssm":  # AWS's own parameters belong to no account
        return arn.replace(f":{account}:parameter/aws/", "::parameter/aws/")
    if service == "iam" and iam_actions._query_param(query, "InstanceProfileName"):
        return _instance_profile(query, account)
    if service == "iam" and f":{account}:role/" in arn:
        role = role_replicas.shown(arn.rsplit("/", 1)[-1])
        if role:
            return role["Arn"]
        first = iam_actions._query_param(query, "Path") or "/"  # CreateRole is authorized on the future ARN, which includes the path
        return f"arn:aws:iam::{account}:role{first}{arn.rsplit('/', 1)[-1]}"
    if service == "iam" and iam_actions._query_param(query, "OpenIDConnectProviderArn"):
        return iam_actions._query_param(query, "OpenIDConnectProviderArn")
    if service == "events" and arn == "*":
        asked = json.loads(body or b"{}")  # a rule's tags or targets
        rule = asked.get("Rule") and f"arn:aws:events:{region}:{account}:rule/{asked['Rule']}"
        return asked.get("ResourceARN") or rule or arn
    if service == "eks":
        return _eks(path, region, account) or arn
    if service == "states" and ":stateMachine:" in arn:  # also of a call that names a version or an alias
        return ":".join(arn.split(":")[:7])
    return arn


def _parameters(body, region, account):
    """GetParametersByPath is authorized on the path, a call with several names on the first of them."""
    asked = json.loads(body or b"{}")
    name = asked.get("Path") or next(iter(asked.get("Names") or []), None)
    return name and f"arn:aws:ssm:{region}:{account}:parameter/{name.strip('/')}"


def _instance_profile(query, account):
    """Calls about an instance profile are authorized on the profile, also if they name a role; CreateInstanceProfile
    on the future ARN.
    """
    name = iam_actions._query_param(query, "InstanceProfileName")
    profile = iam._instance_profiles.get(name)
    path = iam_actions._query_param(query, "Path") or "/"
    return profile["Arn"] if profile else f"arn:aws:iam::{account}:instance-profile{path}{name}"


def _eks(path, region, account):
    """Calls about a part of a cluster are authorized on that part; the call that creates it, on the cluster."""
    base = f"arn:aws:eks:{region}:{account}"
    entry.set(None)
    match = re.match(r"/clusters/([^/]+)/(node-groups|addons|pod-identity-associations)/([^/]+)", path)
    if match:
        cluster, kind, name = match.groups()
        record = {"node-groups": eks._nodegroups, "addons": eks._addons}.get(kind, {}).get(f"{cluster}/{name}") or {}
        known = record.get("nodegroupArn") or record.get("addonArn")
        word = {"node-groups": "nodegroup", "addons": "addon"}.get(kind, "podidentityassociation")
        return known or f"{base}:{word}/{cluster}/{name}"
    match = re.match(r"/clusters/([^/]+)/access-entries/(.+?)(/access-policies.*)?$", unquote(path))
    if match:
        entry.set(match.groups()[:2])
        found = eks._access_entries.get(eks._ae_key(*match.groups()[:2]))
        return found["accessEntryArn"] if found else f"{base}:access-entry/{match.group(1)}/*"
    if path.startswith("/tags/"):
        return unquote(path[len("/tags/"):])
    return None
