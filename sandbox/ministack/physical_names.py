"""Names that CloudFormation generates for resources without a name in the template.

MiniStack derives them from the names of stack and resource. On AWS they differ between stacks: a resource that a
removed stack has left behind keeps its name, and another stack of the same name generates a new one.
"""

from patches import patch

from ministack.services import cloudformation
from ministack.services.cloudformation import provisioners


@patch("ministack.services.cloudformation.provisioners._physical_name")
def physical_name(original, stack_name, logical_id, **options):
    stack = cloudformation._stacks.get(stack_name) or {}
    token = provisioners._NAME_SEED.set(provisioners._NAME_SEED.get() + stack.get("StackId", ""))
    try:
        return original(stack_name, logical_id, **options)
    finally:
        provisioners._NAME_SEED.reset(token)
