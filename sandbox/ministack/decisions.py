"""Records the authorization decisions about the stack's roles. `make rights` repeats them with one permission
removed.

MiniStack evaluates a call from an EvalContext and the caller's policies. The file has both: the first line has the
roles' policies as deployed, and each further line has a call that differs from the earlier calls of the same script.
Calls are recorded from the time a script begins (POST /_sandbox/script?name=Story), and only if they were evaluated
with the policies as deployed: calls after a script has changed the role's policies are left out. A call about a role
that a replica does not know yet is evaluated on an ARN without the role's path and is retried later; that decision
is left out too.
"""

import contextvars
import hashlib
import json
import os
import threading
from dataclasses import asdict

import role_replicas
from patches import patch

from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id
from ministack.services import cloudformation

FILE = os.environ.get("SANDBOX_DECISIONS")
STACK = "Sawhorse"

_asked = contextvars.ContextVar("sandbox_asked", default=None)
_lock = threading.Lock()
_kept = set()
_roles = {}  # a role's name -> its logical id, its policies, the keys of their conditions
_script = ""


@patch("ministack.core.iam_evaluator.enforce")  # the app imports the function at each request
def enforce(original, *args, **named):
    asked = []
    token = _asked.set(asked)
    try:
        denied = original(*args, **named)
    finally:
        _asked.reset(token)
    if asked and _script and not role_replicas.without_path(asked[0][0].resource_arn):
        _keep(*asked[0], denied)
    return denied


@patch("ministack.core.iam_evaluator.evaluate")
def evaluate(original, ctx, policies, *limits):
    result = original(ctx, policies, *limits)
    if _asked.get() is not None:  # the caller's policies come first, then that of the resource
        _asked.get().append((ctx, policies, result.decision))
    return result


def script(query):
    """Called when a script begins. At the first script the roles are as deployed."""
    global _script
    with _lock:
        if FILE and not _script:
            _begin()
        _script = query["name"]
    return {}


def _begin():
    stack = cloudformation._stacks.get(STACK) or {"_template_body": "{}", "_resources": {}}
    template = json.dumps(json.loads(stack["_template_body"]), sort_keys=True)
    for logical, resource in stack["_resources"].items():
        if resource["ResourceType"] == "AWS::IAM::Role":
            name = resource["PhysicalResourceId"]
            policies = iam_evaluator._gather_role_policies(name, get_account_id())
            _roles[name] = logical, policies, _condition_keys(policies)
    _write({"template": hashlib.sha256(template.encode()).hexdigest(),
            "roles": {logical: [asdict(s) for policy in policies for s in policy] for logical, policies, _ in _roles.values()}})


def _keep(ctx, policies, decision, denied):
    role = iam_evaluator._role_name_from_assumed_arn(ctx.principal_arn)
    logical, deployed, keys = _roles.get(role, ("", None, ()))
    if policies != deployed:
        return
    context = asdict(ctx)
    for field in ("service_context", "principal_keys"):  # only keys that the policies' conditions name are needed
        context[field] = {key: value for key, value in context[field].items() if key.lower() in keys}
    call = {"role": logical, "context": context, "decision": decision, "denied": bool(denied)}
    with _lock:
        line = {"script": _script, **call}
        text = json.dumps(line, sort_keys=True)
        if text not in _kept:
            _kept.add(text)
            _write(line)


def _condition_keys(policies):
    return {key.lower() for policy in policies for statement in policy for block in statement.conditions.values() for key in block}


def _write(line):
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, sort_keys=True) + "\n")
