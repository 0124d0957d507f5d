"""The sandbox's own API in MiniStack, for its other parts and for scripts: /_sandbox/…"""

import json
from urllib.parse import parse_qs

import access
import changes
import decisions
import entry_replicas
import images
import lag
import pod_identity
import queues
import restart
import updates
from patches import patch

from ministack.core.iam_evaluator import resolve_caller_identity
from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import eks


@patch("ministack.app.app")
async def app(original, scope, receive, send):
    handler = ROUTES.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
    if scope["type"] == "http":
        lag.meet(scope)
    if not handler:
        return await original(scope, receive, send)
    query = {key: values[0] for key, values in parse_qs(scope["query_string"].decode()).items()}
    set_request_account_id(query.get("accessKeyId", ""))
    set_request_region(None)
    if scope["method"] == "POST":
        query["body"] = await _body(receive)
    body = json.dumps(handler(query)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})


async def _body(receive):
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts).decode()


def caller(query):
    """The owner of an access key; {} for an unknown one. No signature is checked."""
    identity = resolve_caller_identity(query.get("accessKeyId", "")) or {}
    return {"arn": identity.get("userArn", ""), "userId": identity.get("userId", "")}


def access_entries(query):
    """Mode and entries of a cluster as its API server knows them. Each entry has its role's id at its creation and
    the current one.
    """
    updates.settle()
    name = query.get("cluster", "")
    cluster = eks._clusters.get(name)
    if not cluster:
        return {"authenticationMode": "", "accessEntries": []}
    entries = [(entry, *entry_replicas.known_to_api_server(entry))
               for entry in eks._access_entries.values() if entry["clusterName"] == name]
    shown = [_entry(entry, granted) for entry, known, granted in entries if known]
    return {"authenticationMode": access.mode(cluster), "accessEntries": shown}


def _entry(entry, granted):
    prefix = eks._ap_key(entry["clusterName"], entry["principalArn"], "")
    return {
        **{key: entry[key] for key in ("principalArn", "type", "username", "kubernetesGroups")},
        "roleId": access.role_ids.get(entry["accessEntryArn"]) or "",
        "currentRoleId": access.current_role_id(entry["principalArn"]) or "",
        "policies": [policy for key, policy in eks._access_policies.items() if granted and key.startswith(prefix)],
    }


def event(query):
    """Puts an event on the default bus as AWS itself. The body is an entry of PutEvents, with Detail as an object."""
    entry = json.loads(query["body"])
    changes.put(entry["Source"], entry["DetailType"], entry["Detail"], entry.get("Resources", []))
    return {}


def queue_hold(query):
    """Sets how long SQS reserves the names of queues that are deleted from now on."""
    queues.hold(float(query["seconds"]))
    return {}


def ip_family(query):
    """Sets a cluster's ipFamily, ipv4 or ipv6, which MiniStack drops when the cluster is created."""
    eks._clusters[query["cluster"]]["kubernetesNetworkConfig"]["ipFamily"] = query["family"]
    return {}


def change_events(query):
    """Sets what happens to the next change events of SSM."""
    changes.order(query["order"], int(query["count"]))
    return {}


ROUTES = {
    ("GET", "/_sandbox/caller"): caller,
    ("GET", "/_sandbox/access-entries"): access_entries,
    ("GET", "/_sandbox/lag"): lag.show,
    ("GET", "/_sandbox/lag/delay"): lag.delay,
    ("GET", "/_sandbox/pod-credentials"): pod_identity.credentials,
    ("GET", "/_sandbox/pod-identity"): pod_identity.assigned,
    ("POST", "/_sandbox/events"): event,
    ("POST", "/_sandbox/change-events"): change_events,
    ("POST", "/_sandbox/latest"): images.publish,
    ("POST", "/_sandbox/lag"): lag.force,
    ("POST", "/_sandbox/lag/begin"): lag.decide,
    ("POST", "/_sandbox/ip-family"): ip_family,
    ("POST", "/_sandbox/queue-hold"): queue_hold,
    ("POST", "/_sandbox/keep"): restart.keep,
    ("POST", "/_sandbox/script"): decisions.script,
    ("POST", "/_sandbox/shrink"): updates.shrink,
}
