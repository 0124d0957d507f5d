"""EKS's access entries and Pod Identity associations take seconds to become effective.

At first a new entry cannot be found, and the API server does not know its principal. The API server knows the
principal before it grants what an associated access policy allows. A deleted entry remains visible for some time,
and no new one can be created in its place until then.
"""

import lag
import role_replicas

from ministack.services import eks

NOT_FOUND = "The specified principalArn could not be found. You can view your available access entries with 'list-access-entries'."
ROLE = "Role provided in the request does not exist."
INVALID = "The specified principalArn is invalid: invalid principal."

_handlers = {}
_deleted = {}  # (cluster, principal) -> the entry that was deleted last


def install():
    for name in ("_create_access_entry", "_describe_access_entry", "_update_access_entry", "_delete_access_entry",
                 "_associate_access_policy", "_disassociate_access_policy", "_list_associated_access_policies",
                 "_create_pod_identity_association"):
        _handlers[name] = getattr(eks, name)
    eks._create_access_entry = create
    eks._describe_access_entry = describe
    eks._delete_access_entry = delete
    eks._create_pod_identity_association = create_association
    eks._associate_access_policy = associate
    for name in ("_update_access_entry", "_disassociate_access_policy", "_list_associated_access_policies"):
        setattr(eks, name, _of_an_entry(_handlers[name]))


def create(cluster, body):
    principal = body.get("principalArn", "")
    if _role_unknown(principal):
        return eks._error(400, "InvalidParameterException", INVALID)
    if lag.pending("deleted-entry", _key(cluster, principal)):
        return eks._error(409, "ResourceInUseException", "The specified access entry resource is already in use on this cluster.")
    answer = _handlers["_create_access_entry"](cluster, body)
    if answer[0] == 200:
        lag.begin("access-entry", _key(cluster, principal))
    return answer


def describe(cluster, principal):
    if lag.pending("deleted-entry", _key(cluster, principal)) and eks._ae_key(cluster, principal) not in eks._access_entries:
        return eks._json_resp(200, {"accessEntry": _deleted[cluster, principal]})
    return _of_an_entry(_handlers["_describe_access_entry"])(cluster, principal)


def delete(cluster, principal):
    entry = eks._access_entries.get(eks._ae_key(cluster, principal))
    answer = _of_an_entry(_handlers["_delete_access_entry"])(cluster, principal)
    if answer[0] == 200:
        _deleted[cluster, principal] = dict(entry)
        lag.begin("deleted-entry", _key(cluster, principal))
    return answer


def associate(cluster, principal, body):
    answer = _of_an_entry(_handlers["_associate_access_policy"])(cluster, principal, body)
    if answer[0] == 200:
        lag.begin("access-policy", _key(cluster, principal))
    return answer


def _of_an_entry(handler):
    def call(cluster, principal, *args):
        if lag.pending("access-entry", _key(cluster, principal)):
            return eks._error(404, "ResourceNotFoundException", NOT_FOUND)
        return handler(cluster, principal, *args)
    return call


def create_association(cluster, body):
    if _role_unknown(body.get("roleArn", "")):
        return eks._error(400, "InvalidParameterException", ROLE)
    answer = _handlers["_create_pod_identity_association"](cluster, body)
    if answer[0] == 200:
        lag.begin("pod-identity", f"{cluster}/{body['namespace']}/{body['serviceAccount']}")
    return answer


def known_to_api_server(entry):
    """Whether the API server knows the entry's principal, and whether it grants what the access policies allow."""
    key = _key(entry["clusterName"], entry["principalArn"])
    return not lag.unseen("access-entry", key), not lag.unseen("access-policy", key)


def _role_unknown(arn):
    return ":role/" in arn and role_replicas.unknown_to_eks(arn.rsplit("/", 1)[-1])


def _key(cluster, principal):
    return f"{cluster}/{principal.rsplit('/', 1)[-1]}"
