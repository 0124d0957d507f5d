"""The state machine's own calls of DynamoDB can go wrong on order, as those of the functions can (sandbox/fault).

Step Functions calls DynamoDB inside MiniStack, past the gateway. Here the gateway is told of each such call before it is
made, counts it, and says what becomes of it. The errors have the names that they have on AWS.
"""

import json
import os
import threading
import urllib.request

from ministack.services import stepfunctions

MEET = os.environ["AWS_ENDPOINT_URL"] + "/_sandbox/faults/meet"
SECONDS = 60  # the gateway answers late where no answer is ordered: the state's own time is over by then
ERRORS = {
    "error": "DynamoDB.InternalServerErrorException",
    "throttle": "DynamoDB.ProvisionedThroughputExceededException",
    "reset": "DynamoDB.SdkClientException",
    "lost": "DynamoDB.SdkClientException",
}

quiet = threading.Lock()  # who has it keeps the state machine from changing anything

_invoke = stepfunctions._invoke_dynamodb


def install():
    stepfunctions._invoke_dynamodb = invoke


def invoke(operation, data):
    kind = _meet(operation[0].upper() + operation[1:])
    if kind and kind != "lost":
        raise _failed(kind)
    with quiet:
        result = _invoke(operation, data)
    if kind:
        raise _failed(kind)
    return result


def _failed(kind):
    return stepfunctions._ExecutionError(ERRORS[kind], f"{kind}: ordered by the sandbox")


def _meet(action):
    call = {"function": "state-machine", "service": "dynamodb", "action": action}
    request = urllib.request.Request(MEET, json.dumps(call).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer)["kind"]
