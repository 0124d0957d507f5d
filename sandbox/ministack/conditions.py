"""Condition keys and policy variables that Sawhorse's policies use and MiniStack does not support (AUTH=true).

MiniStack supplies aws:RequestTag and aws:TagKeys. A condition on a key that it does not supply is never met: this
module adds aws:UserAgent and the keys of services. MiniStack has no variables: this module replaces ${key} in a
resource by the key's value. If there is no value, the statement matches nothing, as on AWS.
"""

import contextvars
import dataclasses
import json
import re

import authorization
import ec2_gate
from patches import patch

from ministack.core import iam_actions, iam_evaluator
from ministack.services import eks, iam

_user_agent = contextvars.ContextVar("sandbox_user_agent", default=None)
_names_a_tag = iam_evaluator.ParsedStatement(
    "", "Allow", actions=["nothing"], resources=["nothing"], conditions={"Null": {"aws:ResourceTag/x": "true"}})
_variable = re.compile(r"\$\{([^}]+)\}")


@patch("ministack.core.iam_evaluator.pin_request_caller")  # the app imports the function at each request
def pin_request_caller(original, headers, query=None):
    _user_agent.set(headers.get("user-agent"))
    return original(headers, query)


@patch("ministack.core.iam_evaluator.resolve_principal")
def resolve_principal(original, *args, **named):
    """MiniStack looks up a resource's tags only if one of the caller's own policies refers to tags.

    If only the permissions boundary refers to them, this adds a statement that names a tag and has no other effect.
    """
    found = original(*args, **named)
    limits = getattr(found, "limits", [])
    if limits and any(iam_evaluator._names_condition_key(limit, "aws:resourcetag/") for limit in limits):
        found.policies = [*found.policies, [_names_a_tag]]
    return found


@patch("ministack.core.iam_evaluator._first_match")
def first_match(original, ctx, statements, effect):
    return original(ctx, [_filled(s, ctx) for s in statements], effect)


def _filled(statement, ctx):
    if not any("${" in resource for resource in statement.resources):
        return statement
    values = {name: iam_evaluator._resolve_condition_key(name, ctx) for r in statement.resources for name in _variable.findall(r)}
    filled = [_variable.sub(lambda match: values[match.group(1)], r) for r in statement.resources
              if all(values[name] is not None for name in _variable.findall(r))]
    return dataclasses.replace(statement, resources=filled or ["nothing"])


@patch("ministack.core.iam_actions.request_tag_context")  # the app imports the function at each request
def request_context(original, service, action, body, params):
    context = original(service, action, body, params)
    if _user_agent.get():
        context["aws:UserAgent"] = _user_agent.get()
    if service == "iam":
        context.update(_boundary(action, params))
    if service == "eks":
        context.update(_entry(action, body))
    if service == "dynamodb":
        context.update(_leading(body))
    if service == "ec2" and action.split(":")[-1] in ec2_gate.LAUNCHES:
        context.update(ec2_gate.request_tags(params))
    return context


def _leading(body):
    """The partition key of a call about items: that of the item, or of the query."""
    asked = json.loads(body or b"{}")
    named = asked.get("Key") or asked.get("Item") or {}
    match = re.match(r"pk = (:\w+)", asked.get("KeyConditionExpression", ""))
    value = asked["ExpressionAttributeValues"][match.group(1)] if match else named.get("pk")
    return {"dynamodb:LeadingKeys": [value["S"]]} if value else {}


def _boundary(action, params):
    """The permissions boundary that the call sets on a role, or else the role's current one."""
    given = iam_actions._query_param(params, "PermissionsBoundary")
    role = iam._roles.get(iam_actions._query_param(params, "RoleName")) or {}
    arn = given or (role.get("PermissionsBoundary") if action != "iam:CreateRole" else None)
    return {"iam:PermissionsBoundary": arn} if arn else {}


def _entry(action, body):
    """The principal of the access entry that a call is about, which is in the path, and the entry's type if it
    exists.
    """
    asked = json.loads(body) if body[:1] == b"{" else {}
    keys = {}
    if authorization.entry.get():  # MiniStack has determined the resource before
        found = eks._access_entries.get(eks._ae_key(*authorization.entry.get())) or {}
        keys = {"eks:principalArn": authorization.entry.get()[1], "eks:accessEntryType": found.get("type")}
    if action == "eks:CreateAccessEntry":
        keys = {"eks:principalArn": asked.get("principalArn"), "eks:accessEntryType": asked.get("type") or "STANDARD"}
    if action == "eks:UpdateClusterConfig":
        keys["eks:authenticationMode"] = (asked.get("accessConfig") or {}).get("authenticationMode")
    if action == "eks:AssociateAccessPolicy":
        keys["eks:policyArn"] = asked.get("policyArn")
    return {key: value for key, value in keys.items() if value}
