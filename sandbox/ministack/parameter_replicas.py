"""SSM reads parameters from replicas, which may lack the write that an event has just announced.

GetParameters does not lag: with it, functions read AWS's public parameters only.
"""

import json

import lag
from patches import patch

from ministack.core.responses import error_response_json, json_response
from ministack.services import ssm

_replica = lag.Replica("parameter")


def written(name, before):
    """before is a copy of the parameter before the write, None if there was none."""
    _replica.written(name, before)


@patch("ministack.services.ssm._get_parameter")
def get_parameter(original, data):
    name = data.get("Name")
    shown = _shown(name)
    if shown is ssm._parameters.get(name):  # also if the name is an ARN or selects a version
        return original(data)
    if not shown:
        return error_response_json("ParameterNotFound", f"Parameter {name} not found", 400)
    return json_response({"Parameter": ssm._param_out(shown, data.get("WithDecryption", False))})


@patch("ministack.services.ssm._get_parameters_by_path")
def get_parameters_by_path(original, data):
    """Shows a deleted parameter, while its deletion is not visible yet, on the last page."""
    answer = original(data)
    if answer[0] != 200:
        return answer
    body = json.loads(answer[2])
    shown = [(one, _shown(one["Name"])) for one in body["Parameters"]]
    body["Parameters"] = [one if before is ssm._parameters.get(one["Name"]) else _out(before, data) for one, before in shown if before]
    if "NextToken" not in body:
        body["Parameters"] += [_out(_shown(name), data) for name in _replica.names()
                               if name not in ssm._parameters and _shown(name) and _below(name, data)]
    return json_response(body)


def _shown(name):
    now = ssm._parameters.get(name)
    return _replica.shows(name, now) if lag.lagging() else now


def _out(parameter, data):
    return ssm._param_out(parameter, data.get("WithDecryption", False))


def _below(name, data):
    prefix = data["Path"].rstrip("/") + "/"
    return name.startswith(prefix) and (data.get("Recursive", False) or "/" not in name[len(prefix):])
