"""CloudFormation does not delete a managed policy that is a role's permissions boundary.

IAM refuses it (DeleteConflict), and a stack update leaves such a policy behind.
"""

from ministack.services import iam
from ministack.services.cloudformation import provisioners

KIND = "AWS::IAM::ManagedPolicy"

_delete = provisioners._RESOURCE_HANDLERS[KIND]["delete"]


def install():
    provisioners._RESOURCE_HANDLERS[KIND]["delete"] = delete


def delete(arn, properties):
    if any(role.get("PermissionsBoundary") == arn for role in iam._roles.values()):
        raise ValueError("Cannot delete a policy attached to entities.")
    return _delete(arn, properties)
