"""SQS as on AWS: a new queue is not visible to all calls at once, nor is a deletion, and the name stays reserved for
60 s.

The name is reserved for as long as a deleted queue may remain visible, scaled like all lags. A script can change
that time: POST /_sandbox/queue-hold?seconds=60.

EventBridge sends as a service, so the queue's policy must allow it. A delivery that the policy denies counts as a
failed invocation of the rule.
"""

import contextvars
import logging
import time

import lag
from patches import patch

from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id, get_region
from ministack.services import sqs

HELD = lag.KINDS["deleted-queue"]
MISSING = "QueueDoesNotExist", "The specified queue does not exist."

_seconds = HELD * lag.SCALE
_free = {}  # account, region, name -> when a queue of that name can be created again
_dying = {}  # account, region, name -> the deleted queue
_rule = contextvars.ContextVar("sandbox_rule", default="")


def hold(seconds):
    global _seconds
    _seconds = seconds


@patch("ministack.services.sqs._HANDLERS.CreateQueue")
def create(original, data, url):
    name = data.get("QueueName", "")
    if time.time() < _free.get(_key(name), 0):
        raise sqs._Err("QueueDeletedRecently",
                       "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
    new = name not in sqs._queue_name_to_url
    answer = original(data, url)
    if new:
        _dying.pop(_key(name), None)
        lag.begin("queue", name)
    return answer


@patch("ministack.services.sqs._HANDLERS.DeleteQueue")
def delete(original, data, url):
    queue = sqs._get_q(data.get("QueueUrl", url))
    name = queue["name"]
    if _key(name) in _dying:
        return {}
    answer = original(data, url)
    _dying[_key(name)], _free[_key(name)] = queue, time.time() + _seconds
    lag.begin("deleted-queue", name)
    return answer


@patch("ministack.services.sqs._HANDLERS.GetQueueUrl")
def url_of(original, data, url):
    name = data.get("QueueName", "")
    if lag.pending("queue", name):
        raise sqs._Err(*MISSING)
    queue = _lingering(name)
    return {"QueueUrl": queue["url"]} if queue else original(data, url)


@patch("ministack.services.sqs._get_q")
def find(original, url, action=None):
    name = sqs._queue_ref_from_urlish(url)[1]
    if lag.pending("queue", name):
        raise sqs._Err(*MISSING)
    return _lingering(name) or original(url, action)


def _lingering(name):
    """The deleted queue of that name, while calls still find it."""
    return _dying.get(_key(name)) if lag.pending("deleted-queue", name) else None


@patch("ministack.services.eventbridge._invoke_target")
def invoke(original, target, event, rule, view=None):
    token = _rule.set(rule.get("Arn", ""))
    try:
        return original(target, event, rule, view)
    finally:
        _rule.reset(token)


@patch("ministack.services.eventbridge._dispatch_to_sqs")
def send(original, spec, payload, parameters=None):
    queue = sqs._queue_by_arn(str(spec))
    service, account = "events.amazonaws.com", get_account_id()
    asked = iam_evaluator.EvalContext(
        principal_arn=service, principal_type="Service", principal_account=account, action="sqs:SendMessage", resource_arn=str(spec),
        region=get_region(), secure_transport=True, service_context={"aws:sourcearn": _rule.get(), "aws:sourceaccount": account})
    policy = queue["attributes"].get("Policy") if queue else None
    if iam_evaluator.evaluate_resource_policy(policy, asked, service).decision != "Allow":
        logging.getLogger("sandbox").warning("%s: the queue's policy does not let %s in", spec, _rule.get())
        return None
    return original(spec, payload, parameters)


def _key(name):
    return get_account_id(), get_region(), name
