"""EKS's access entries and Pod Identity associations take seconds to become effective.

At first a new entry cannot be found, and the API server does not know its principal. The API server knows the
principal before it grants what an associated access policy allows. A deleted entry remains visible for some time,
and no new one can be created in its place until then.
"""

import lag
import role_replicas
from patches import patch

from ministack.services import eks

NOT_FOUND = "The specified principalArn could not be found. You can view your available access entries with 'list-access-entries'."
ROLE = "Role provided in the request does not exist."
INVALID = "The specified principalArn is invalid: invalid principal."

_deleted = {}  # (cluster, principal) -> the entry that was deleted last


@patch("ministack.services.eks._create_access_entry")
def create(original, cluster, body):
    principal = body.get("principalArn", "")
    if _role_unknown(principal):
        return eks._error(400, "InvalidParameterException", INVALID)
    if lag.pending("deleted-entry", _key(cluster, principal)):
        return eks._error(409, "ResourceInUseException", "The specified access entry resource is already in use on this cluster.")
    answer = original(cluster, body)
    if answer[0] == 200:
        lag.begin("access-entry", _key(cluster, principal))
    return answer


@patch("ministack.services.eks._describe_access_entry")
def describe(original, cluster, principal):
    if lag.pending("deleted-entry", _key(cluster, principal)) and eks._ae_key(cluster, principal) not in eks._access_entries:
        return eks._json_resp(200, {"accessEntry": _deleted[cluster, principal]})
    return _late(cluster, principal) or original(cluster, principal)


@patch("ministack.services.eks._delete_access_entry")
def delete(original, cluster, principal):
    entry = eks._access_entries.get(eks._ae_key(cluster, principal))
    answer = _late(cluster, principal) or original(cluster, principal)
    if answer[0] == 200:
        _deleted[cluster, principal] = dict(entry)
        lag.begin("deleted-entry", _key(cluster, principal))
    return answer


@patch("ministack.services.eks._associate_access_policy")
def associate(original, cluster, principal, body):
    answer = _late(cluster, principal) or original(cluster, principal, body)
    if answer[0] == 200:
        lag.begin("access-policy", _key(cluster, principal))
    return answer


@patch("ministack.services.eks._update_access_entry", "ministack.services.eks._disassociate_access_policy",
       "ministack.services.eks._list_associated_access_policies")
def of_an_entry(original, cluster, principal, *args):
    return _late(cluster, principal) or original(cluster, principal, *args)


def _late(cluster, principal):
    """The answer about an entry that the caller cannot see yet, or None."""
    if lag.pending("access-entry", _key(cluster, principal)):
        return eks._error(404, "ResourceNotFoundException", NOT_FOUND)
    return None


@patch("ministack.services.eks._create_pod_identity_association")
def create_association(original, cluster, body):
    if _role_unknown(body.get("roleArn", "")):
        return eks._error(400, "InvalidParameterException", ROLE)
    answer = original(cluster, body)
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
