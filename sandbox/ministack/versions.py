"""Versions and aliases: of state machines in CloudFormation and in executions; of functions in asynchronous calls.

MiniStack has neither resource type, an execution that an alias starts has the state machine's latest definition, and an
asynchronous call through an alias has the function's default settings.
"""

import contextvars
import json

from patches import patch

from ministack.core.responses import AccountRegionScopedDict
from ministack.services import lambda_svc, stepfunctions
from ministack.services.cloudformation import provisioners

TYPES = "ministack.services.cloudformation.provisioners._RESOURCE_HANDLERS.AWS::StepFunctions::"

_version = contextvars.ContextVar("sandbox_version", default=None)  # of the state machine, for the execution that begins


@patch("ministack.services.stepfunctions._start_execution")
def start_execution(original, data):
    token = _version.set(stepfunctions._execution_version_arn(data.get("stateMachineArn", "")))
    try:
        return original(data)  # its thread has a copy of the context
    finally:
        _version.reset(token)


class Machines(AccountRegionScopedDict):
    """The state machines. An execution gets its own with the definition of its version."""

    __slots__ = ()

    def get(self, key, default=None):
        machine, version = super().get(key, default), stepfunctions._state_machine_versions.get(_version.get())
        if version and version["stateMachineArn"] == key:
            return {**machine, "definition": version["definition"]}
        return machine


patch("ministack.services.stepfunctions._state_machines")(Machines())


class Handlers(dict):
    """What creates, updates and deletes the resources of one type."""


def _done(answer):
    body = json.loads(answer[2])
    if answer[0] >= 400:
        raise ValueError(body["message"])
    return body


def create_version(_logical_id, props, _stack_name):
    arn = _done(stepfunctions._publish_state_machine_version(
        {"stateMachineArn": props["StateMachineArn"], "revisionId": props.get("StateMachineRevisionId")}))["stateMachineVersionArn"]
    return arn, {"Arn": arn}


def update_version(physical_id, old, new, stack_name):
    """All properties require a replacement."""
    created = create_version(None, new, stack_name)
    provisioners._delete_predecessor(delete_version, physical_id, old)
    return created


def delete_version(physical_id, _props):
    _done(stepfunctions._delete_state_machine_version({"stateMachineVersionArn": physical_id}))


def _routing(props):
    return [{"stateMachineVersionArn": one["StateMachineVersionArn"], "weight": int(one["Weight"])} for one in props["RoutingConfiguration"]]


def create_alias(_logical_id, props, _stack_name):
    arn = _done(stepfunctions._create_state_machine_alias(
        {"name": props["Name"], "routingConfiguration": _routing(props)}))["stateMachineAliasArn"]
    return arn, {"Arn": arn}


def update_alias(physical_id, _old, new, _stack_name):
    _done(stepfunctions._update_state_machine_alias({"stateMachineAliasArn": physical_id, "routingConfiguration": _routing(new)}))
    return physical_id, {"Arn": physical_id}


def delete_alias(physical_id, _props):
    _done(stepfunctions._delete_state_machine_alias({"stateMachineAliasArn": physical_id}))


patch(TYPES + "StateMachineVersion", new=True)(Handlers(create=create_version, update=update_version, delete=delete_version))
patch(TYPES + "StateMachineAlias", new=True)(Handlers(create=create_alias, update=update_alias, delete=delete_alias))


@patch("ministack.services.lambda_svc.invoke_async_with_retry")
def invoke_async(original, func, *args, **named):
    """Calls with the settings of the alias that the call names."""
    name, _, qualifier = func["config"]["FunctionArn"].partition(":function:")[2].partition(":")
    settings = (lambda_svc._functions[name].get("event_invoke_configs") or {}).get(qualifier)
    return original({**func, "event_invoke_config": settings} if settings else func, *args, **named)
