"""Parameter Store as on AWS: change events, patterns, sizes, types, versions, who wrote them, filters."""

import copy
import json

import changes
import parameter_replicas
import parameter_rules
from patches import patch

from ministack.core import iam_evaluator
from ministack.core.responses import error_response_json
from ministack.services import ssm

PAGE = 10  # GetParametersByPath rejects larger pages.

# CloudFormation calls these functions too.
@patch("ministack.services.ssm._put_parameter")
def put_parameter(original, data):
    existing = copy.deepcopy(ssm._parameters.get(data.get("Name")))
    data = parameter_rules.complete(data, existing)
    refusal = parameter_rules.refusal(data, existing)
    if refusal:
        return error_response_json(*refusal, 400)
    answer = original(data)
    if answer[0] == 200:
        name = data["Name"]
        ssm._parameter_history[name][-1]["LastModifiedUser"] = iam_evaluator.caller_arn()
        del ssm._parameter_history[name][: -parameter_rules.VERSIONS]
        parameter_replicas.written(name, existing)
        changes.emit("Update" if existing else "Create", ssm._parameters[name])
    return answer


@patch("ministack.services.ssm._delete_parameter")
def delete_parameter(original, data):
    _, gone = ssm._lookup_parameter(data.get("Name"))
    answer = original(data)
    if answer[0] == 200:
        parameter_replicas.written(gone["Name"], gone)
        changes.emit("Delete", gone)
    return answer


@patch("ministack.services.ssm._delete_parameters")
def delete_parameters(original, data):
    before = {name: ssm._lookup_parameter(name)[1] for name in data.get("Names", [])}
    answer = original(data)
    if answer[0] == 200:
        for name in json.loads(answer[2])["DeletedParameters"]:
            parameter_replicas.written(name, before[name])
            changes.emit("Delete", before[name])
    return answer


@patch("ministack.services.ssm._get_parameters_by_path")
def get_parameters_by_path(original, data):
    size, path = data.get("MaxResults", PAGE), data.get("Path", "")
    if not 1 <= size <= PAGE:
        return error_response_json(
            "ValidationException",
            f"1 validation error detected: Value '{size}' at 'maxResults' failed to satisfy constraint: "
            f"Member must have value less than or equal to {PAGE}", 400)
    if not path.startswith("/"):
        return error_response_json(
            "ValidationException",
            'The parameter doesn\'t meet the parameter name requirements. The parameter name must begin with a '
            'forward slash "/".', 400)
    return original(data)
