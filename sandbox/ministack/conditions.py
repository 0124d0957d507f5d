"""The condition keys of IAM and EKS that policies of Sawhorse name, where MiniStack supplies none (AUTH=true).

MiniStack knows aws:RequestTag and aws:TagKeys; a condition on a key that it does not supply is never met.
"""

import json

import authorization
from ministack.core import iam_actions
from ministack.services import eks, iam

_tags = iam_actions.request_tag_context


def install():
    iam_actions.request_tag_context = request_context  # app imports it at each request


def request_context(service, action, body, params):
    context = _tags(service, action, body, params)
    if service == "iam":
        context.update(_boundary(action, params))
    if service == "eks":
        context.update(_entry(action, body))
    return context


def _boundary(action, params):
    """The boundary that the call gives a role, else the one that the role has."""
    given = iam_actions._query_param(params, "PermissionsBoundary")
    role = iam._roles.get(iam_actions._query_param(params, "RoleName")) or {}
    arn = given or (role.get("PermissionsBoundary") if action != "iam:CreateRole" else None)
    return {"iam:PermissionsBoundary": arn} if arn else {}


def _entry(action, body):
    """Of a call about an access entry: its principal, which is in the path, and its type, if EKS has it."""
    asked = json.loads(body) if body[:1] == b"{" else {}
    keys = {}
    if authorization.entry.get():  # MiniStack has asked for the resource before
        found = eks._access_entries.get(eks._ae_key(*authorization.entry.get())) or {}
        keys = {"eks:principalArn": authorization.entry.get()[1], "eks:accessEntryType": found.get("type")}
    if action == "eks:CreateAccessEntry":
        keys = {"eks:principalArn": asked.get("principalArn"), "eks:accessEntryType": asked.get("type") or "STANDARD"}
    if action == "eks:AssociateAccessPolicy":
        keys["eks:policyArn"] = asked.get("policyArn")
    return {key: value for key, value in keys.items() if value}
