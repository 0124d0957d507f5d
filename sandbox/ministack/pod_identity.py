"""EKS Pod Identity: the credentials that a service account gets through its association.

On AWS the agent on the node requests them from EKS Auth, which MiniStack lacks. Here the sandbox's kubelet requests
them through sandbox_api, and its admission webhook asks whether pods get them. As on AWS, the role must trust the
service pods.eks.amazonaws.com for sts:AssumeRole and for sts:TagSession, and there are no credentials without the
agent's add-on.
"""

import json
import time

import lag

from ministack.core.iam_evaluator import EvalContext, evaluate_trust_policy
from ministack.core.responses import get_account_id, get_region
from ministack.services import eks, iam, sts

AGENT = "eks-pod-identity-agent"
SERVICE = "pods.eks.amazonaws.com"
HOURS = 6


def assigned(query):
    """Whether a pod of the service account that is admitted now gets Pod Identity's variables."""
    cluster, namespace, account = (query.get(key, "") for key in ("cluster", "namespace", "serviceAccount"))
    known = not lag.unseen("pod-identity", f"{cluster}/{namespace}/{account}")
    return {"assigned": known and _role_of(cluster, namespace, account) is not None}


def _role_of(cluster, namespace, account):
    return next((a["roleArn"] for a in eks._pod_identity_associations.values() if
                 (a["clusterName"], a["namespace"], a["serviceAccount"]) == (cluster, namespace, account)), None)


def credentials(query):
    """{} without association or agent, {"error"} if the role does not allow it, else the answer of the agent's
    endpoint.
    """
    cluster, namespace, account = (query.get(key, "") for key in ("cluster", "namespace", "serviceAccount"))
    addon = eks._addons.get(f"{cluster}/{AGENT}") or {}
    role_arn = _role_of(cluster, namespace, account)
    if addon.get("status") != "ACTIVE" or not role_arn:
        return {}
    role = iam._roles.get(role_arn.rsplit("/", 1)[-1])
    if not role or role["Arn"] != role_arn:
        return {"error": f"the role {role_arn} does not exist"}
    tags = {"eks-cluster-arn": f"arn:aws:eks:{get_region()}:{get_account_id()}:cluster/{cluster}", "eks-cluster-name": cluster,
            "kubernetes-namespace": namespace, "kubernetes-service-account": account}
    for action in ("sts:AssumeRole", "sts:TagSession"):
        if not _trusts(role, action, tags):
            return {"error": f"the trust policy of {role_arn} does not allow {SERVICE} {action}"}
    return _session(role, tags)


def _trusts(role, action, tags):
    document = role.get("AssumeRolePolicyDocument", "{}")
    document = json.loads(document) if isinstance(document, str) else document
    statements = document.get("Statement", [])
    statements = [statements] if isinstance(statements, dict) else statements
    ours = [s for s in statements if SERVICE in _services(s)]
    # MiniStack's evaluator lets root match every service, so it gets only the statements that name this service.
    root = f"arn:aws:iam::{get_account_id()}:root"
    context = EvalContext(principal_arn=root, principal_type="Root", principal_account=get_account_id(), action=action,
                          resource_arn=role["Arn"], region=get_region(), request_tags=tags, tag_keys=list(tags))
    return evaluate_trust_policy({**document, "Statement": ours}, root, context)


def _services(statement):
    principal = statement.get("Principal")
    services = principal.get("Service", []) if isinstance(principal, dict) else []
    return [services] if isinstance(services, str) else services


def _session(role, tags):
    key, secret, token = sts._gen_session_access_key(), sts._gen_secret(), sts._gen_session_token()
    account = role["Arn"].split(":")[4]
    name = f"eks-{tags['eks-cluster-name']}-{tags['kubernetes-service-account']}"[:64]
    sts.register_session(key, {
        "Arn": f"arn:aws:sts::{account}:assumed-role/{role['RoleName']}/{name}", "UserId": f"{role['RoleId']}:{name}",
        "SecretAccessKey": secret, "SessionToken": token, "Expiration": time.time() + HOURS * 3600, "AccountId": account,
        "PrincipalType": "AssumedRole", "SessionTags": [{"Key": k, "Value": v} for k, v in tags.items()],
    })
    return {"AccessKeyId": key, "SecretAccessKey": secret, "Token": token, "AccountId": account,
            "Expiration": iam._future(HOURS * 3600)}
