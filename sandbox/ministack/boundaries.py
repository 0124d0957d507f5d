"""CloudFormation does not delete a managed policy that is a role's permissions boundary.

IAM refuses it (DeleteConflict), and a stack update leaves such a policy behind.
"""

from patches import patch

from ministack.services import iam


@patch("ministack.services.cloudformation.provisioners._RESOURCE_HANDLERS.AWS::IAM::ManagedPolicy.delete")
def delete(original, arn, properties):
    if any(role.get("PermissionsBoundary") == arn for role in iam._roles.values()):
        raise ValueError("Cannot delete a policy attached to entities.")
    return original(arn, properties)
