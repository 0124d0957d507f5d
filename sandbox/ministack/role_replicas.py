"""IAM answers from replicas, and EKS and EC2 learn of roles and their policies later than IAM.

If a replica does not know a role, a call that names it is authorized on the ARN without a path, as on AWS.
"""

import contextvars
import copy
from contextlib import contextmanager

import lag
from patches import patch

from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id
from ministack.services import iam

HANDLERS = "ministack.services.iam._IAM_HANDLERS."
READS = ("GetRole", "GetRolePolicy", "ListRolePolicies", "ListAttachedRolePolicies", "ListRoleTags", "ListInstanceProfilesForRole")
WRITES = ("DeleteRole", "UpdateRole", "UpdateAssumeRolePolicy", "PutRolePermissionsBoundary",
          "DeleteRolePermissionsBoundary", "PutRolePolicy", "DeleteRolePolicy", "AttachRolePolicy", "DetachRolePolicy", "TagRole",
          "UntagRole")

_iam = lag.Replica("iam")
_ec2 = lag.Replica("ec2-policies")
_judging_ec2 = contextvars.ContextVar("sandbox_judging_ec2", default=False)


def shown(name):
    """The role as the caller's replica has it, None if it has none."""
    return _iam.shows(name, iam._roles.get(name)) if lag.lagging() else iam._roles.get(name)


def without_path(arn):
    """Whether a call was authorized on another ARN than that of the role that IAM has: the caller's replica did not know
    it then. It may know it by now.
    """
    role = iam._roles.get(arn.rsplit("/", 1)[-1])
    return ":role/" in arn and bool(role) and role["Arn"] != arn


def unknown_to_eks(name):
    return lag.pending("eks-role", name)


@patch(*(HANDLERS + action for action in READS))
def read(original, params):
    with _as_shown(iam._p(params, "RoleName")):
        return original(params)


@patch(*(HANDLERS + action for action in WRITES))
def write(original, params):
    name = iam._p(params, "RoleName")
    if iam._roles.get(name) and not shown(name):
        return iam._error(404, "NoSuchEntity", f"The role with name {name} cannot be found.", ns="iam")
    before = copy.deepcopy(iam._roles.get(name))
    answer = original(params)
    if answer[0] == 200:
        _iam.written(name, before)
        _ec2.written(name, before)
    return answer


@patch(HANDLERS + "CreateRole")
def create(original, params):
    name = iam._p(params, "RoleName")
    before = copy.deepcopy(iam._roles.get(name))
    answer = original(params)
    if answer[0] == 200:
        _iam.written(name, before)
        _ec2.written(name, before)
        lag.begin("eks-role", name)
    return answer


@contextmanager
def _as_shown(name):
    """IAM's handlers run one after the other on the loop that serves requests, so none of them runs in between."""
    now, seen = iam._roles.get(name), shown(name)
    _put(name, seen)
    try:
        yield
    finally:
        _put(name, now)


def _put(name, role):
    if role:
        iam._roles[name] = role
    else:
        iam._roles.pop(name, None)


@patch("ministack.core.iam_evaluator.enforce")
def enforce(original, access_key_id, iam_action, service, *args, **named):
    token = _judging_ec2.set(service == "ec2")
    try:
        return original(access_key_id, iam_action, service, *args, **named)
    finally:
        _judging_ec2.reset(token)


@patch("ministack.core.iam_evaluator._gather_role_policies")
def gather_role_policies(original, name, account):
    """EC2 evaluates the policies that have reached it."""
    now = iam._roles.get_scoped(account, None, name)
    if not _judging_ec2.get() or account != get_account_id():
        return original(name, account)
    known = _ec2.shows(name, now)
    if known is now:
        return original(name, account)
    documents = list((known or {}).get("InlinePolicies", {}).values())
    documents += [iam_evaluator._resolve_managed_policy_document(arn, account) for arn in (known or {}).get("AttachedPolicies", [])]
    return [parsed for parsed in (iam_evaluator.parse_policy_document(d) for d in documents if d) if parsed]
