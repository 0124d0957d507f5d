"""EKS updates (UpdateClusterVersion, UpdateClusterConfig for the access mode, UpdateNodegroupConfig, DescribeUpdate,
ListUpdates), and node groups that are created and deleted.

An update is InProgress for a moment and takes effect when it becomes Successful. A node group is CREATING before it
is ACTIVE, and DELETING before it is gone. The transition happens at the first EKS request after it is due, so every
caller sees the same state and no thread is needed. The gateway's header X-Sandbox-Update-Fails makes it fail.
"""

import contextvars
import json
import os
import re
import time

import cluster_rules
import nodegroup_rules
from patches import patch

from ministack.core.responses import new_uuid
from ministack.services import eks

SECONDS = float(os.environ.get("SANDBOX_UPDATE_SECONDS", "1.5"))
NAME = r"([A-Za-z0-9_-]+)"
FAILED = "ordered by the sandbox"

_updates = {}  # cluster ARN -> updates, oldest first
_fails = contextvars.ContextVar("sandbox_update_fails", default="")  # the error code with which what the call begins fails
_due = {}  # node group ARN -> when its creation or deletion ends


@patch("ministack.services.eks._handle_request_sync")
def handle(original, method, path, headers, body, query):
    settle()
    _fails.set(headers.get("x-sandbox-update-fails", ""))
    for verb, pattern, function in ROUTES:
        match = re.fullmatch(pattern, path)
        if match and verb == method:
            return function(*match.groups(), eks.json.loads(body or b"{}"),
                            {k: v[0] if isinstance(v, list) else v for k, v in query.items()})
    return original(method, path, headers, body, query)


@patch("ministack.services.eks._create_cluster")
def create_cluster(original, body, creator_arn=None):
    body, refusal = cluster_rules.complete(body)
    if refusal:
        return eks._error(400, *refusal)
    answer = original(body, creator_arn)
    if answer[0] == 200:
        record = eks._clusters[body["name"]]
        record["computeConfig"] = body.get("computeConfig", {"enabled": False})
        return eks._json_resp(200, {"cluster": eks._sanitize(record)})
    return answer


@patch("ministack.services.eks._create_nodegroup")
def create_nodegroup(original, cluster, body):
    refusal = cluster in eks._clusters and nodegroup_rules.create_refusal(eks._clusters[cluster], body)
    if refusal:
        return eks._error(400, *refusal)
    answer = original(cluster, {"amiType": "AL2023_x86_64_STANDARD", **body})
    if answer[0] == 200:
        record = eks._nodegroups[f"{cluster}/{body['nodegroupName']}"]
        record.update({key: body[key] for key in ("launchTemplate", "updateConfig", "remoteAccess", "nodeRepairConfig") if key in body})
        record["status"], _due[record["nodegroupArn"]] = "CREATING", time.monotonic() + SECONDS
        if _fails.get():
            record["health"] = {"issues": [{"code": _fails.get(), "message": FAILED, "resourceIds": [body["nodegroupName"]]}]}
        del record["resources"]["remoteAccessSecurityGroup"]  # MiniStack invents one; EKS has it with remote access only
        if "launchTemplate" in body:
            del record["diskSize"]
        return eks._json_resp(200, {"nodegroup": record})
    return answer


def delete_nodegroup(name, nodegroup, _body, _query):
    group = eks._nodegroups.get(f"{name}/{nodegroup}")
    if name not in eks._clusters:
        return _missing_cluster(name)
    if not group:
        return eks._error(404, "ResourceNotFoundException", f"No node group found for name: {nodegroup}.")
    if group["status"] in ("CREATING", "UPDATING", "DELETING"):
        return eks._error(409, "ResourceInUseException", f"Nodegroup {nodegroup} is {group['status']}")
    group["status"], _due[group["nodegroupArn"]] = "DELETING", time.monotonic() + SECONDS
    return eks._json_resp(200, {"nodegroup": group})


def update_cluster_config(name, body, _query):
    cluster, refused = _to_update(name, body, cluster_rules.access_refusal)
    if refused:
        return refused
    mode = body["accessConfig"]["authenticationMode"]

    def apply():
        cluster["accessConfig"] = {**cluster["accessConfig"], "authenticationMode": mode}

    return _start(cluster, cluster, "AccessConfigUpdate", [("AuthenticationMode", mode)], apply)


def update_cluster_version(name, body, _query):
    cluster, refused = _to_update(name, body, cluster_rules.version_refusal)
    if refused:
        return refused
    version = body["version"]
    return _start(cluster, cluster, "VersionUpdate", [("Version", version)], lambda: cluster.update(version=version))


def _to_update(name, body, refusal):
    """Returns (cluster, None), or (None, EKS's answer) if it refuses to update the cluster so."""
    cluster = eks._clusters.get(name)
    if not cluster:
        return None, _missing_cluster(name)
    if cluster["status"] != "ACTIVE":
        return None, eks._error(409, "ResourceInUseException",
                                f"Cannot update cluster {name}: it currently has an update in progress.")
    refused = refusal(cluster, body)
    return cluster, refused and eks._error(400, *refused)


def update_nodegroup_config(name, nodegroup, body, _query):
    cluster = eks._clusters.get(name)
    if not cluster:
        return _missing_cluster(name)
    group = eks._nodegroups.get(f"{name}/{nodegroup}")
    if not group:
        return eks._error(404, "ResourceNotFoundException", f"No node group found for name: {nodegroup}.")
    if group["status"] != "ACTIVE":
        return eks._error(409, "ResourceInUseException",
                          "Nodegroup cannot be updated as it is currently not in Active State")
    change, refusal = nodegroup_rules.change(group, body)
    if refusal:
        return eks._error(400, *refusal)
    return _start(cluster, group, "ConfigUpdate", nodegroup_rules.params(body), lambda: group.update(change), nodegroup)


def describe_update(name, update_id, _body, query):
    if name not in eks._clusters:
        return _missing_cluster(name)
    for update in _of(name, query):
        if update["id"] == update_id:
            return eks._json_resp(200, {"update": _public(update)})
    return eks._error(404, "ResourceNotFoundException", f"No update found for ID: {update_id}")


def list_updates(name, _body, query):
    if name not in eks._clusters:
        return _missing_cluster(name)
    return eks._json_resp(200, {"updateIds": [update["id"] for update in reversed(_of(name, query))]})


ROUTES = [
    ("POST", rf"/clusters/{NAME}/updates", update_cluster_version),
    ("POST", rf"/clusters/{NAME}/update-config", update_cluster_config),
    ("POST", rf"/clusters/{NAME}/node-groups/{NAME}/update-config", update_nodegroup_config),
    ("DELETE", rf"/clusters/{NAME}/node-groups/{NAME}", delete_nodegroup),
    ("GET", rf"/clusters/{NAME}/updates/([^/]+)", describe_update),
    ("GET", rf"/clusters/{NAME}/updates", list_updates),
]


def _start(cluster, record, kind, params, apply, nodegroup=None):
    update = {
        "id": new_uuid(), "status": "InProgress", "type": kind, "createdAt": time.time(), "errors": [],
        "params": [{"type": key, "value": value} for key, value in params],
        "_due": time.monotonic() + SECONDS, "_apply": apply, "_fails": _fails.get(), "_record": record, "_nodegroup": nodegroup,
    }
    record["status"] = "UPDATING"
    _updates.setdefault(cluster["arn"], []).append(update)
    return eks._json_resp(200, {"update": _public(update)})


def settle():
    """Applies everything that is due."""
    for update in (u for updates in list(_updates.values()) for u in updates):
        if update["status"] == "InProgress" and time.monotonic() >= update["_due"]:
            if not update["_fails"]:
                update["_apply"]()
            update["_record"]["status"] = "ACTIVE"
            if "modifiedAt" in update["_record"]:
                update["_record"]["modifiedAt"] = eks._now()
            update["status"] = "Failed" if update["_fails"] else "Successful"
            update["errors"] = [{"errorCode": update["_fails"], "errorMessage": FAILED, "resourceIds": []}] if update["_fails"] else []
    for group in list(eks._nodegroups.values()):  # after a restart no group has a due time
        if group["status"] not in ("CREATING", "DELETING") or time.monotonic() < _due.get(group["nodegroupArn"], 0):
            continue
        _due.pop(group["nodegroupArn"], None)
        if group["status"] == "CREATING":
            group["status"] = "CREATE_FAILED" if (group.get("health") or {}).get("issues") else "ACTIVE"
        else:
            eks._delete_nodegroup(group["clusterName"], group["nodegroupName"])


def kept():
    """The updates, all of them completed, because the rest of an update in progress cannot be saved."""
    for update in (u for updates in _updates.values() for u in updates):
        update["_due"] = 0
    settle()
    return {arn: [{**_public(u), "_nodegroup": u["_nodegroup"]} for u in updates] for arn, updates in _updates.items()}


def restore(updates):
    _updates.update(updates)


def _of(cluster, query):
    """The cluster's own updates, or those of the node group that the query names."""
    return [update for update in _updates.get(eks._clusters[cluster]["arn"], [])
            if update["_nodegroup"] == query.get("nodegroupName")]


def _public(update):
    return {key: value for key, value in update.items() if not key.startswith("_")}


def _missing_cluster(name):
    return eks._error(404, "ResourceNotFoundException", f"No cluster found for name: {name}.")


def shrink(query):
    """Takes one node from a node group's desired size, as Auto Scaling does when an instance ends with its place."""
    name = json.loads(query["body"])["group"]
    group = next(g for g in eks._nodegroups.values() if g["nodegroupName"] == name)
    size = group["scalingConfig"]
    if size["desiredSize"] <= size["minSize"]:
        return {"refused": f"Currently, desiredSize equals minSize ({size['minSize']}). Terminating instance without "
                           "replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity "
                           "flag to false or lower group's min size."}
    group["scalingConfig"] = {**size, "desiredSize": size["desiredSize"] - 1}
    return {}
