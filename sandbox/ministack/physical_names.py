"""Names that CloudFormation generates for resources without a name in the template.

MiniStack derives them from the names of stack and resource. On AWS they differ between stacks: a resource that a
removed stack has left behind keeps its name, and another stack of the same name generates a new one.
"""

from ministack.services import cloudformation
from ministack.services.cloudformation import provisioners

_physical_name = provisioners._physical_name


def install():
    provisioners._physical_name = physical_name


def physical_name(stack_name, logical_id, **options):
    stack = cloudformation._stacks.get(stack_name) or {}
    token = provisioners._NAME_SEED.set(provisioners._NAME_SEED.get() + stack.get("StackId", ""))
    try:
        return _physical_name(stack_name, logical_id, **options)
    finally:
        provisioners._NAME_SEED.reset(token)
