"""Injects faults into the state machine's own DynamoDB calls, as sandbox/chaos/fault does into those of the functions.

Step Functions calls DynamoDB inside MiniStack, not through the gateway. This module announces each such call to the
gateway, which counts it and answers with the fault to apply. The errors have the names that they have on AWS.
"""

import json
import os
import threading
import urllib.request

from patches import patch

from ministack.services import stepfunctions

MEET = os.environ["AWS_ENDPOINT_URL"] + "/_sandbox/faults/meet"
SECONDS = 60  # longer than the state's own timeout: with the fault "timeout" the gateway does not answer in time
ERRORS = {
    "error": "InternalServerErrorException",
    "throttle": "ProvisionedThroughputExceededException",
    "reset": "SdkClientException",
    "lost": "SdkClientException",
}

quiet = threading.Lock()  # its holder stops the state machine from changing anything


@patch("ministack.services.stepfunctions._invoke_dynamodb")
def invoke(original, operation, data):
    kind, code = _meet(operation[0].upper() + operation[1:])
    if kind and kind != "lost":
        raise _failed(kind, code)
    with quiet:
        result = original(operation, data)
    if kind:
        raise _failed(kind, code)
    return result


def _failed(kind, code):
    return stepfunctions._ExecutionError("DynamoDB." + (code or ERRORS[kind]), f"{kind}: ordered by the sandbox")


def _meet(action):
    call = {"function": "state-machine", "service": "dynamodb", "action": action}
    request = urllib.request.Request(MEET, json.dumps(call).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        ordered = json.load(answer)
    return ordered["kind"], ordered.get("code")
