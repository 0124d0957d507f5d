"""SQS holds the name of a deleted queue for 60 s; MiniStack does not.

Here it holds names for as long as was asked for (POST /_sandbox/queue-hold?seconds=60), at first not at all: else every
script that turns Karpenter off and on again would wait.
"""

import time

from ministack.core.responses import get_account_id, get_region
from ministack.services import sqs

_seconds = 0.0
_deleted = {}
_create = sqs._HANDLERS["CreateQueue"]
_delete = sqs._HANDLERS["DeleteQueue"]


def install():
    sqs._HANDLERS["CreateQueue"] = create
    sqs._HANDLERS["DeleteQueue"] = delete


def hold(seconds):
    global _seconds
    _seconds = seconds


def create(data, url):
    free = _deleted.get(_key(data.get("QueueName", "")), 0)
    if time.monotonic() < free:
        raise sqs._Err("QueueDeletedRecently",
                       "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
    return _create(data, url)


def delete(data, url):
    name = sqs._get_q(data.get("QueueUrl", url))["name"]
    answer = _delete(data, url)
    _deleted[_key(name)] = time.monotonic() + _seconds
    return answer


def _key(name):
    return get_account_id(), get_region(), name
