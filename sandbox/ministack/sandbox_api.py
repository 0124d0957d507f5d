"""What the rest of the sandbox asks MiniStack outside the AWS API: GET /_sandbox/…"""

import json
from urllib.parse import parse_qs

import access
import updates
import pod_identity

from ministack import app as ministack
from ministack.core.iam_evaluator import resolve_caller_identity
from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import eks

_app = ministack.app


def install():
    ministack.app = app


async def app(scope, receive, send):
    handler = ROUTES.get(scope["path"]) if scope["type"] == "http" else None
    if not handler:
        return await _app(scope, receive, send)
    query = {key: values[0] for key, values in parse_qs(scope["query_string"].decode()).items()}
    set_request_account_id(query.get("accessKeyId", ""))
    set_request_region(None)
    body = json.dumps(handler(query)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})


def caller(query):
    """Who an access key belongs to; {} for an unknown one. No signature is checked."""
    identity = resolve_caller_identity(query.get("accessKeyId", "")) or {}
    return {"arn": identity.get("userArn", ""), "userId": identity.get("userId", "")}


def access_entries(query):
    """Mode and entries of a cluster, each with its role's unique id when it was made and now."""
    updates.settle()
    name = query.get("cluster", "")
    cluster = eks._clusters.get(name)
    if not cluster:
        return {"authenticationMode": "", "accessEntries": []}
    entries = [entry for entry in eks._access_entries.values() if entry["clusterName"] == name]
    return {"authenticationMode": access.mode(cluster), "accessEntries": [_entry(entry) for entry in entries]}


def _entry(entry):
    prefix = eks._ap_key(entry["clusterName"], entry["principalArn"], "")
    return {
        **{key: entry[key] for key in ("principalArn", "type", "username", "kubernetesGroups")},
        "roleId": access.role_ids.get(entry["accessEntryArn"]) or "",
        "currentRoleId": access.current_role_id(entry["principalArn"]) or "",
        "policies": [policy for key, policy in eks._access_policies.items() if key.startswith(prefix)],
    }


ROUTES = {
    "/_sandbox/caller": caller,
    "/_sandbox/access-entries": access_entries,
    "/_sandbox/pod-credentials": pod_identity.credentials,
}
