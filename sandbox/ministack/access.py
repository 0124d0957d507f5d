"""EKS access entries as on AWS: the cluster's access mode, principals, groups, defaults, role ids.

An entry binds to the role's unique id. MiniStack stores the ARN only, so this module records the id at the time the
entry is created. sandbox_api shows that id and the current one, and the sandbox's authenticator compares them.
"""

import re

from patches import patch

from ministack.services import eks, iam

INVALID = "InvalidParameterException"
RESERVED = ("system:", "eks:", "aws:", "amazon:", "iam:")
POLICIES = "arn:aws:eks::aws:cluster-access-policy/"
MODE_MESSAGE = ("The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
                "operation.")
NODES = {"EC2_LINUX": ["system:nodes"], "EC2_WINDOWS": ["eks:kube-proxy-windows", "system:nodes"]}

role_ids = {}  # access entry ARN -> the role's unique id when the entry was made


@patch("ministack.services.eks._handle_request_sync")
def handle(original, method, path, headers, body, query):
    match = re.match(r"/clusters/([A-Za-z0-9_-]+)/access-entries(/|$)", path)
    cluster = match and eks._clusters.get(match.group(1))
    if cluster and mode(cluster) == "CONFIG_MAP":
        return eks._error(400, "InvalidRequestException", MODE_MESSAGE)
    return original(method, path, headers, body, query)


def mode(cluster):
    return cluster["accessConfig"]["authenticationMode"]


def current_role_id(principal_arn):
    """The unique id of the role with exactly this ARN, None if there is none or the principal is not a role."""
    role = iam._roles.get(principal_arn.rsplit("/", 1)[-1])
    return role["RoleId"] if role and role["Arn"] == principal_arn else None


@patch("ministack.services.eks._build_access_entry")
def build_access_entry(original, cluster, principal, body):
    """MiniStack's record with EKS's defaults, also for the cluster creator's entry."""
    entry = original(cluster, principal, {**body, **_identity(principal, body.get("type", "STANDARD"), body)})
    role_ids[entry["accessEntryArn"]] = current_role_id(principal)
    return entry


@patch("ministack.services.eks._create_access_entry")
def create_access_entry(original, cluster, body):
    refusal = _principal_refusal(body.get("principalArn", "")) or _identity_refusal(body.get("type", "STANDARD"), body)
    return eks._error(400, *refusal) if refusal else original(cluster, body)


@patch("ministack.services.eks._update_access_entry")
def update_access_entry(original, cluster, principal, body):
    entry = eks._access_entries.get(eks._ae_key(cluster, principal))
    refusal = entry and _identity_refusal(entry["type"], body)
    return eks._error(400, *refusal) if refusal else original(cluster, principal, body)


@patch("ministack.services.eks._associate_access_policy")
def associate_access_policy(original, cluster, principal, body):
    if not body.get("policyArn", "").startswith(POLICIES):
        return eks._error(400, INVALID, "The policyArn parameter format is not valid")
    return original(cluster, principal, body)


@patch("ministack.services.eks._create_nodegroup")
def create_nodegroup(original, cluster, body):
    # In the API modes EKS itself creates the access entry for the nodes of a managed node group.
    answer = original(cluster, body)
    role = body.get("nodeRole", "")
    if answer[0] == 200 and mode(eks._clusters[cluster]) != "CONFIG_MAP":
        if eks._ae_key(cluster, role) not in eks._access_entries:
            create_access_entry(cluster, {"principalArn": role, "type": "EC2_LINUX"})
    return answer


@patch("ministack.services.eks._create_pod_identity_association")
def create_pod_identity_association(original, cluster, body):
    if body.get("roleArn") and not current_role_id(body["roleArn"]):
        return eks._error(400, INVALID, "Role provided in the request does not exist.")
    return original(cluster, body)


def _principal_refusal(arn):
    if ":role/" in arn and not current_role_id(arn) or not re.match(r"arn:aws:iam::\d{12}:(role|user)/", arn):
        return INVALID, "The specified principalArn is invalid: invalid principal."
    return None


def _identity_refusal(kind, body):
    if kind != "STANDARD":
        if body.get("kubernetesGroups") or body.get("username"):
            return INVALID, f"An access entry of type {kind} cannot carry kubernetesGroups or a username."
        return None
    for word in [*body.get("kubernetesGroups", []), body.get("username", "")]:
        for prefix in RESERVED:
            if word.startswith(prefix):
                return INVALID, f"The kubernetes group or username {word} is invalid, it cannot start with {prefix}"
    return None


def _identity(principal, kind, body):
    """Groups and username with the values that EKS fills in."""
    if kind in NODES:
        return {"kubernetesGroups": NODES[kind], "username": "system:node:{{EC2PrivateDNSName}}"}
    if kind != "STANDARD" or body.get("username"):
        return {}
    if ":role/" not in principal:
        return {"username": principal}
    account, name = principal.split(":")[4], principal.rsplit("/", 1)[-1]
    return {"username": f"arn:aws:sts::{account}:assumed-role/{name}/{{{{SessionName}}}}"}
